// Reads the lines of ssh config files that apply to one host. No defaults and no tokens here.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace drun::transport {

// The values that Host and Match lines are compared with.
struct SshConfigSubject {
  std::string host;  // as typed
  std::string user;  // from the host item; "" = config decides
  std::string local_user;
  std::string home;  // from the password database, as in OpenSSH
  // In the second pass, which `Match final` asks for: the HostName of the first one, with which Host lines are
  // compared.
  std::string final_host = "";
};

struct SshConfigValue {
  std::vector<std::string> words;
  std::string rest;   // the line after the keyword, unparsed: for ProxyCommand
  std::string where;  // file:line
};

// Values by keyword, in lower case. Only the first value counts, except for IdentityFile and CertificateFile, which
// have several that differ.
class SshConfigValues {
 public:
  const SshConfigValue* find(std::string_view keyword) const;
  std::string word(std::string_view keyword) const;  // the first one, or ""
  const std::vector<SshConfigValue>& all(std::string_view keyword) const;
  void add(const std::string& keyword, SshConfigValue value);

  std::string needs_openssh;      // the first line that only OpenSSH can evaluate, and why
  bool wants_final_pass = false;  // a line is `Match final`

 private:
  std::map<std::string, std::vector<SshConfigValue>, std::less<>> values_;
};

struct SshConfigFile {
  std::string path;
  std::string include_folder;  // for relative Include patterns
  bool check_owner = false;    // refuse a file that other users can write
  bool must_exist = false;
};

// Adds the values that `file` has for the host. Errors: kUsage, subject file:line.
Result<void> read_ssh_config(const SshConfigFile& file, const SshConfigSubject& subject, SshConfigValues& values);

// HostName as set so far, or the host as typed.
std::string host_name_of(const SshConfigValues& values, const SshConfigSubject& subject);

// The files that a word of an Include line names, which may be a pattern, in the order of names.
std::vector<std::string> included_files(const std::string& word, const std::string& home,
                                        const std::string& include_folder);

// Keyword and words of one line: handles quotes, `=` and comments. Empty for a blank line; kUsage for an open quote.
struct SshConfigLine {
  std::string keyword;  // lower case
  SshConfigValue value;
};
Result<SshConfigLine> split_ssh_config_line(std::string_view line);

}  // namespace drun::transport
