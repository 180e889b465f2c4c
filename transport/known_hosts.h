// Lines of known_hosts files as OpenSSH reads and writes them. Pure. No policy here: see host_key_check.h.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace drun::transport {

// A public host key: its type as in the files ("ssh-ed25519") and its blob in base64.
struct HostKey {
  HostKey() = default;
  HostKey(std::string key_type, std::string key_base64) : type(std::move(key_type)), base64(std::move(key_base64)) {}
  std::string type;
  std::string base64;
  bool operator==(const HostKey&) const = default;
};

struct KnownKey {
  HostKey key;
  bool revoked = false;     // @revoked
  bool authority = false;   // @cert-authority
  bool plain_name = false;  // found under the name without the port: may be trusted, but never "has changed"
  std::string file;
  int line = 0;
};

// The name under which a host's keys are kept: "[host]:port", or "host" for port 22; an alias is used without port.
std::string known_hosts_name(std::string_view host, int port, std::string_view alias);

// The lines of one file, parsed once for all hosts of a job. A host is looked up in an index of names. Lines with a
// pattern or a hashed name are matched with each host, once: a hash costs two HMACs if the host has a port of its own,
// else one.
class KnownHostLines {
 public:
  explicit KnownHostLines(std::string file) : file_(std::move(file)) {}
  // Parses more lines. Malformed lines are skipped, as OpenSSH does. A last line without a newline counts as complete.
  void append(std::string_view text);
  // Keys for `name`, and for `plain_name` too if it is not empty, in the order of the lines.
  std::vector<KnownKey> find(const std::string& name, const std::string& plain_name);
  int n_lines() const { return n_lines_; }

 private:
  struct Line {
    bool matches(const std::string& name) const;
    KnownKey key;
    std::vector<std::string> patterns;  // of a name that is not hashed
    std::string salt, hash;
  };
  struct Hits {
    std::size_t n_seen = 0;         // lines that have been matched
    std::vector<KnownKey> matched;  // by them
  };
  void index(Line line, std::string_view names);
  std::vector<std::size_t> candidates(const std::string& name, const std::string& plain_name, std::size_t from) const;

  std::string file_;
  int n_lines_ = 0;
  std::vector<Line> lines_;
  std::unordered_map<std::string, std::vector<std::size_t>> by_name_;  // lines with only full names
  std::vector<std::size_t> others_;
  std::map<std::pair<std::string, std::string>, Hits> hits_;  // by name and plain name
};

// "|1|salt|hash" for a name, as HashKnownHosts writes it. `salt`: 20 bytes.
std::string hashed_name(std::string_view salt, std::string_view name);

}  // namespace drun::transport
