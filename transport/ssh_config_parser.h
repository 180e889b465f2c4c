// Reads ssh config files for one host: which lines apply, and what they say. No defaults and no tokens here.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace drun::transport {

// What Host and Match lines are compared with.
struct SshConfigSubject {
  std::string host;  // as typed
  std::string user;  // by the host item; "" = config decides
  std::string local_user;
  std::string home;  // as the password file has it, like OpenSSH
};

struct SshConfigValue {
  std::vector<std::string> words;
  std::string rest;   // the line after the keyword, unparsed: for ProxyCommand
  std::string where;  // file:line
};

// Keywords in lower case. The first value of a keyword counts; IdentityFile and CertificateFile keep all.
class SshConfigValues {
 public:
  const SshConfigValue* find(std::string_view keyword) const;
  std::string word(std::string_view keyword) const;  // the first one, or ""
  const std::vector<SshConfigValue>& all(std::string_view keyword) const;
  void add(const std::string& keyword, SshConfigValue value);

  std::string needs_openssh;  // the first line that only OpenSSH can judge, and why

 private:
  std::map<std::string, std::vector<SshConfigValue>, std::less<>> values_;
};

struct SshConfigFile {
  std::string path;
  std::string include_folder;  // of relative Include patterns
  bool check_owner = false;    // refuse one that others can write
  bool must_exist = false;
};

// Adds what `file` says about the host. Errors: kUsage, subject file:line.
Result<void> read_ssh_config(const SshConfigFile& file, const SshConfigSubject& subject, SshConfigValues& values);

// Keyword and words of one line: quotes, `=`, comments. Empty for a blank line. Nothing on an unbalanced quote.
struct SshConfigLine {
  std::string keyword;  // lower case
  SshConfigValue value;
};
Result<SshConfigLine> split_ssh_config_line(std::string_view line);

}  // namespace drun::transport
