// known_hosts files, and ssh config files, which have the syntax of OpenSSH.
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>

#include "base/fd.h"
#include "base/text.h"
#include "tests/fuzz/fuzz.h"
#include "tests/known_keys.h"
#include "transport/sha1.h"
#include "transport/ssh_config.h"
#include "transport/ssh_config_parser.h"
#include "transport/ssh_config_support.h"
#include "transport/ssh_match.h"
#include "transport/ssh_tokens.h"

namespace drun::fuzz {
namespace {

using namespace transport;
using testing::find_known_keys;

void read_known_hosts(std::string_view text) {
  const std::string name = known_hosts_name("node1", 2222, ""), plain = "node1";
  const auto all = find_known_keys(text, "file", name, plain);
  std::size_t n_alone = 0;
  for (const auto line : split(text, '\n')) n_alone += find_known_keys(line, "file", name, plain).size();
  expect(all.size() == n_alone, "each line counts alone");
  for (const auto& key : all) {
    expect(!key.key.type.empty() && !key.key.base64.empty(), "a key has a type and a blob");
    expect(key.line >= 1 && static_cast<std::size_t>(key.line) <= split(text, '\n').size(), "a key has a line");
  }
  for (const bool hashed : {false, true}) {
    const std::string line = (hashed ? hashed_name("twenty bytes of salt", name) : name) + " ssh-ed25519 AAAA";
    const auto more = find_known_keys(std::string(text) + "\n" + line + "\n", "file", name, plain);
    expect(more.size() == all.size() + 1 && more.back().key.base64 == "AAAA", "a line that was added is found");
  }
  (void)unbase64(text);
}

// Resolves a host with a config of these bytes. Without Include, which would read files of this machine.
void resolve(std::string_view text) {
  if (lower(text).find("include") != std::string::npos) return;
  const Fd file(::memfd_create("config", MFD_CLOEXEC));
  if (!file || !write_all(file.get(), text)) std::abort();
  Host host;
  host.name = "node1";
  SshOptions options;
  options.config_file = "/proc/self/fd/" + std::to_string(file.get());
  const auto target = resolve_ssh_target(host, options);
  if (!target) {
    expect(target.error().code == Errc::kUsage && !target.error().cause.empty(), "an error says what is wrong");
    return;
  }
  expect(target->port >= 1 && target->port <= 65535, "a port is a port");
  expect(target->connect_timeout.count() >= 0, "a time is no debt");
  expect(target->alias == "node1", "the alias is as typed");
}

void run(std::string_view bytes) {
  Input in(bytes);
  const std::size_t kind = in.below(3);
  if (kind == 0) {
    read_known_hosts(in.rest());
  } else if (kind == 1) {
    resolve(in.rest());
  } else {
    const std::string_view line = in.rest();
    const SshTokens tokens = {{'h', "node1"}, {'p', "22"}};
    (void)expand_tokens(line, tokens);
    (void)expand_environment(line);
    if (const auto seconds = parse_ssh_time(line)) expect(*seconds >= 0 && *seconds <= INT32_MAX, "a time is bounded");
    if (const auto words = split_ssh_config_line(line)) {
      (void)host_patterns_match(words->value.words, "node1");
      (void)evaluate_match(words->value.words, {"node1", "node1", "user", "user"});
    }
  }
}

std::vector<std::string> seeds() {
  const std::string name = known_hosts_name("node1", 2222, "");
  return {
      Script().byte(0).raw(
          "# keys\nnode1,10.0.0.1 ssh-ed25519 AAAAC3Nz\n[node1]:2222 ecdsa-sha2-nistp256 AAAA comment\r\n"
          "@revoked * ssh-rsa BBBB\n@cert-authority *.org,!node1 ssh-rsa CCCC\n"),
      Script().byte(0).raw(hashed_name("twenty bytes of salt", name) + " ssh-ed25519 AAAA\n|1|x|y ssh-rsa BBBB\n"),
      Script().byte(1).raw(
          "Host node* !node2\n  HostName %h.example.org\n  User=\"me\"\n  Port 2222\n"
          "  IdentityFile ~/.ssh/id_%r\n  ProxyCommand nc %h %p\nMatch user me host *.org\n  Compression yes\n"),
      Script().byte(1).raw(
          "StrictHostKeyChecking ask\nUserKnownHostsFile ~/a ~/b\nConnectTimeout 1m30s\nProxyJump j\n"
          "IdentityAgent none\nHostKeyAlias x\nHashKnownHosts yes\nAddressFamily inet\nCiphers +aes128-cbc\n"),
      Script().byte(1).raw("Match exec \"true\" all\nPort 1\nMatch originalhost node1 localuser root\nPort 2\n"),
      Script().byte(2).raw("90m"),
      Script().byte(2).raw("match host=node1,!b user \"a b\" # comment"),
      Script().byte(2).raw("${HOME}/%h/%%"),
  };
}

const Target kTarget("ssh_files", run, seeds);

}  // namespace
}  // namespace drun::fuzz
