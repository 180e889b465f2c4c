// Compares drun's reading of random ssh config and known_hosts files with that of `ssh -G` and `ssh-keygen -F`.
//
//   fuzz_ssh_compare [SEED [SECONDS]]
//
// Prints each file that is read differently. Exit status: 0 if there was none.
#include <pwd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <random>
#include <set>
#include <sstream>

#include "base/text.h"
#include "tests/known_keys.h"
#include "transport/sha1.h"
#include "transport/ssh_config.h"

namespace drun::fuzz {
namespace {

using namespace transport;
using testing::find_known_keys;
using Words = std::vector<std::string>;

class Random {
 public:
  explicit Random(std::uint64_t seed) : bits_(seed) {}
  std::size_t below(std::size_t n) { return bits_() % n; }
  bool one_in(std::size_t n) { return below(n) == 0; }
  const std::string& of(const Words& words) { return words[below(words.size())]; }

 private:
  std::mt19937_64 bits_;
};

struct Output {
  std::string text;
  int status = 0;
};

Output output_of(const std::string& command) {
  Output out;
  FILE* const pipe = ::popen(command.c_str(), "r");
  if (pipe == nullptr) std::abort();
  char buffer[4096];
  while (const std::size_t n = std::fread(buffer, 1, sizeof buffer, pipe)) out.text.append(buffer, n);
  const int status = ::pclose(pipe);
  out.status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return out;
}

// ---- ssh config

const Words kPatterns = {"node1", "node*", "!node1", "*",         "node?", "!*",
                         "other", "*.org", "n?de1",  "\"node1\"", "NODE1"};
const Words kLists = {"node1", "node*", "node1,other", "*,!node1", "!node1", "*.org", "NODE1", "alias*,node1.org"};
const Words kUsers = {"root", "me", "*", "!me,*", "nobody-here", "r??t"};

const std::map<std::string, Words> kValues = {
    {"HostName", {"10.0.0.7", "%h.org", "alias.org", "x%%y", "%n.org", "\"quoted\"", "a b", "fd00::1"}},
    {"User", {"me", "\"two words\"", "'single'", "you", "a\\ b"}},
    {"Port", {"1", "2222", "65535", "0022", "22 # tail"}},
    {"IdentityFile",
     {"~/k", "/k1", "\"/my key\"", "%d/k-%h-%r-%p-%u-%n", "/k%%", "none", "~root/k", "/my\\ key", "'/a b'"}},
    {"IdentitiesOnly", {"yes", "no", "YES", "true", "\"yes\""}},
    {"IdentityAgent", {"none", "/run/a", "~/sock", "%d/s", "\"/a b\""}},
    {"ProxyCommand", {"nc %h %p", "none", "  nc \"a b\"  x # y", "NONE", "nc %r@%h:%p %n"}},
    {"ProxyJump", {"j1", "me@j1:2222", "j1,j2", "none"}},
    {"HostKeyAlias", {"key-alias", "Upper"}},
    {"ConnectTimeout", {"17", "1m30s", "none", "2h", "0"}},
    {"UserKnownHostsFile", {"/kh1 /kh2", "~/kh", "none", "/dev/null", "\"/a b\" /c", "%d/kh-%k"}},
    {"Compression", {"yes", "no"}},
    {"HashKnownHosts", {"yes", "no"}},
    {"AddressFamily", {"inet", "any", "inet6", "INET"}},
    {"BindAddress", {"10.0.0.1"}},
};

std::string match_of(Random& random) {
  if (random.one_in(4)) return "all";
  std::string out;
  for (std::size_t i = 0, n = 1 + random.below(2); i < n; ++i) {
    const std::string criterion = random.of({"host", "originalhost", "user", "localuser", "HOST"});
    if (i > 0) out += " ";
    if (random.one_in(5)) out += "!";
    out += criterion + (random.one_in(8) ? "=" : " ") +
           random.of(lower(criterion).find("host") != std::string::npos ? kLists : kUsers);
  }
  return out;
}

std::string config_line(Random& random) {
  std::string keyword, value;
  switch (random.below(8)) {
    case 0:
      keyword = "Host";
      for (std::size_t i = 0, n = 1 + random.below(3); i < n; ++i) value += (i > 0 ? " " : "") + random.of(kPatterns);
      break;
    case 1:
      keyword = "Match";
      value = match_of(random);
      break;
    case 2:
      return random.of({"", "# a comment", "   ", "\t# another"});
    default: {
      auto at = kValues.begin();
      std::advance(at, static_cast<std::ptrdiff_t>(random.below(kValues.size())));
      keyword = at->first;
      value = random.of(at->second);
    }
  }
  if (random.one_in(6)) keyword = lower(keyword);
  std::string line = random.of({"", "  ", "\t", " \t "}) + keyword;
  line += random.of({" ", " ", " ", "=", " = ", "\t", "  "}) + value;
  line += random.of({"", "", "", " ", " # tail", "\t", "\r"});
  if (random.one_in(25))
    line.insert(random.below(line.size() + 1), random.of({"\"", "'", "\\", "=", "#", " ", "%", ","}));
  return line;
}

std::string home() { return ::getpwuid(::getuid())->pw_dir; }

// As drun has it: "~" expanded.
std::string path_of(const std::string& path) { return starts_with(path, "~/") ? home() + path.substr(1) : path; }

Words differences(const SshTarget& target, std::map<std::string, Words>& said) {
  Words out;
  const auto compare = [&](const std::string& keyword, const std::string& ours, std::string theirs) {
    if (ours != theirs) out.push_back(keyword + ": drun '" + ours + "', ssh '" + theirs + "'");
  };
  const auto one = [&said](const std::string& keyword) { return said[keyword].empty() ? "" : said[keyword].front(); };
  const auto or_none = [](const std::string& value) { return lower(value) == "none" ? "" : value; };
  compare("hostname", target.host_name, one("hostname"));
  compare("user", target.user, one("user"));
  compare("port", std::to_string(target.port), one("port"));
  compare("identitiesonly", target.identities_only ? "yes" : "no", one("identitiesonly"));
  compare("hostkeyalias", lower(target.host_key_alias), one("hostkeyalias"));
  compare("proxyjump", or_none(target.proxy_jump), or_none(one("proxyjump")));
  compare("compression", target.compression ? "yes" : "no", one("compression"));
  compare("hashknownhosts", target.hash_known_hosts ? "yes" : "no", one("hashknownhosts"));
  compare("addressfamily", target.address_family, one("addressfamily"));
  compare("bindaddress", target.bind_address, one("bindaddress"));
  const std::string timeout = or_none(one("connecttimeout"));
  compare("connecttimeout", std::to_string(target.connect_timeout.count()), timeout.empty() ? "0" : timeout);
  // ssh -G expands no tokens in these.
  if (one("proxycommand").find('%') == std::string::npos) {
    compare("proxycommand", or_none(target.proxy_command), or_none(one("proxycommand")));
  }
  return out;
}

// True if both read the file in the same way.
bool compare_config(Random& random, const std::string& folder, std::size_t& n_compared) {
  std::string config;
  for (std::size_t i = 0, n = 1 + random.below(8); i < n; ++i) config += config_line(random) + "\n";
  const std::string path = folder + "/config";
  std::ofstream(path) << config;
  const Output ssh = output_of("ssh -G -F " + path + " node1 2>&1");
  Host host;
  host.name = "node1";
  SshOptions options;
  options.config_file = path;
  const auto target = resolve_ssh_target(host, options);
  // drun skips keywords that it does not know, and checks only what applies to the host.
  if (ssh.status != 0) return true;
  ++n_compared;
  std::map<std::string, Words> said;
  std::istringstream lines(ssh.text);
  for (std::string line; std::getline(lines, line);) {
    const auto space = line.find(' ');
    said[line.substr(0, space)].push_back(space == std::string::npos ? "" : line.substr(space + 1));
  }
  Words wrong;
  if (!target) {
    // ssh ignores a line whose keyword begins with a quote that is not closed.
    if (target.error().cause == "a quote is not closed") return true;
    wrong.push_back("drun refuses it: " + target.error().message());
  } else if (target->needs_openssh.empty()) {
    wrong = differences(*target, said);
  }
  if (wrong.empty()) return true;
  std::cout << "--- config\n" << config << "--- differs\n" << join(wrong, "\n") << "\n" << std::flush;
  return false;
}

// ---- known_hosts

std::string key_line(Random& random) {
  const Words names = {"node1", "[node1]:2222", "node*", "!node1", "10.0.0.1",   "other",
                       "NODE1", "[NODE1]:2222", "*",     "?ode1",  "[node1]:22", "[node*]:*"};
  std::string who;
  if (random.one_in(4)) {
    who = hashed_name("twenty bytes of salt", random.of(names));
  } else {
    for (std::size_t i = 0, n = 1 + random.below(3); i < n; ++i) who += (i > 0 ? "," : "") + random.of(names);
  }
  if (random.one_in(20)) who.insert(random.below(who.size() + 1), random.of({"!", ",", "*", "|", "["}));
  const std::string type("\0\0\0\x0bssh-ed25519\0\0\0\x20", 19);
  const std::string blob = base64(type + std::string(32, static_cast<char>('a' + random.below(4))));
  return random.of({"", "", "", "@revoked ", "@cert-authority ", "  ", "\t"}) + who + random.of({" ", "\t", "  "}) +
         "ssh-ed25519 " + blob + random.of({"", " comment", "\r", " "});
}

bool compare_known_hosts(Random& random, const std::string& folder) {
  std::string text;
  for (std::size_t i = 0, n = 1 + random.below(6); i < n; ++i) {
    text += (random.one_in(8) ? random.of({"", "# comment", "   "}) : key_line(random)) + "\n";
  }
  const std::string path = folder + "/known_hosts";
  std::ofstream(path) << text;
  const int port = random.one_in(2) ? 22 : 2222;
  const std::string name = known_hosts_name("node1", port, "");
  std::set<std::string> ours, theirs;
  for (const auto& key : find_known_keys(text, path, name, "")) {
    ours.insert(std::to_string(key.line) + (key.revoked ? " REVOKED" : key.authority ? " CA" : ""));
  }
  std::istringstream lines(output_of("ssh-keygen -F '" + name + "' -f " + path + " 2>&1").text);
  for (std::string line; std::getline(lines, line);) {
    const auto at = line.find(" found: line ");
    if (starts_with(line, "# Host ") && at != std::string::npos) theirs.insert(std::string(trim(line.substr(at + 13))));
  }
  if (ours == theirs) return true;
  std::cout << "--- known_hosts\n" << text << "--- " << name << ": drun has lines";
  for (const auto& line : ours) std::cout << " " << line << ",";
  std::cout << " ssh-keygen";
  for (const auto& line : theirs) std::cout << " " << line << ",";
  std::cout << "\n" << std::flush;
  return false;
}

}  // namespace
}  // namespace drun::fuzz

int main(int argc, char** argv) {
  const std::uint64_t seed = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 1;
  const double seconds = argc > 2 ? std::strtod(argv[2], nullptr) : 60;
  char folder[] = "/tmp/drun-compare-XXXXXX";
  if (::mkdtemp(folder) == nullptr) return 2;
  drun::fuzz::Random random(seed);
  std::size_t n_files = 0, n_configs = 0, n_differ = 0;
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  while (std::chrono::steady_clock::now() < end) {
    ++n_files;
    if (!drun::fuzz::compare_config(random, folder, n_configs)) ++n_differ;
    if (!drun::fuzz::compare_known_hosts(random, folder)) ++n_differ;
  }
  std::filesystem::remove_all(folder);
  std::cout << "seed " << seed << ": " << n_files << " files of each kind, " << n_configs
            << " configs that ssh accepts, " << n_differ << " differ\n";
  return n_differ == 0 ? 0 : 1;
}
