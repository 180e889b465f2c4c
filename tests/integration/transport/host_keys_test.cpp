// Host keys that drun accepts, compared with ssh itself: for each state of known_hosts and each policy, drun must not
// log in where `ssh` with the same policy does not.
#include <gtest/gtest.h>

#include <array>
#include <map>
#include <sstream>

#include "base/text.h"
#include "tests/integration/transport/sshd_fixture.h"

namespace drun::transport::testing {
namespace {

constexpr std::array<const char*, 5> kPolicies = {"", "ask", "accept-new", "yes", "no"};  // "": not set

// In the lines: %N the server's name, with its port; %K its key; %O another one of the same type, %E one of another
// type; %A the authority that has certified the key, %B another authority.
struct State {
  const char* name;
  const char* known_hosts;
  const char* config = "";       // lines for the host
  bool hashed = false;           // the names in known_hosts
  bool has_certificate = false;  // the server shows it
};

void PrintTo(const State& state, std::ostream* out) { *out << state.name; }

const State kStates[] = {
    {"Unknown", ""},
    {"Known", "%N %K\n"},
    {"Changed", "%N %O\n"},
    {"OtherType", "%N %E\n"},
    {"ChangedAndKnown", "%N %O\n%N %K\n"},
    {"OtherTypeAndKnown", "%N %E\n%N %K\n"},
    {"Revoked", "@revoked * %K\n"},
    {"RevokedAndKnown", "%N %K\n@revoked %N %K\n"},
    {"AnotherIsRevoked", "%N %K\n@revoked * %O\n"},
    {"Authority", "@cert-authority * %A\n", "", false, true},
    {"OtherAuthority", "@cert-authority * %B\n", "", false, true},
    {"AuthorityRevoked", "@cert-authority * %A\n@revoked * %A\n", "", false, true},
    {"AuthorityWithoutCertificate", "@cert-authority * %A\n"},
    {"AliasKnown", "cluster %K\n", "HostKeyAlias cluster"},
    {"AliasChanged", "cluster %O\n%N %K\n", "HostKeyAlias cluster"},
    {"AliasUnknown", "%N %K\n", "HostKeyAlias cluster"},
    {"OtherPortKnown", "127.0.0.1 %K\n"},
    {"OtherPortChanged", "127.0.0.1 %O\n"},
    {"OtherPortOtherType", "[127.0.0.1]:1 %E\n"},
    {"HashedKnown", "%N %K\n", "", true},
    {"HashedChanged", "%N %O\n", "", true},
    {"HashedOtherType", "%N %E\n", "", true},
    {"NegatedPattern", "*,!%N %O\n"},
};

class HostKeys : public ::testing::TestWithParam<State> {
 protected:
  // The key in a file "NAME.pub" of the folder.
  static std::string key(const Sshd& sshd, const std::string& name) {
    std::istringstream in(sshd.folder().read(name + ".pub"));
    std::string type, base64;
    in >> type >> base64;
    return type + " " + base64;
  }

  void SetUp() override {
    const std::string folder = keys_.folder().path();
    output_of("cd " + folder +
              " && for k in other a b; do ssh-keygen -q -t ed25519 -N '' -f $k; done; "
              "ssh-keygen -q -t ecdsa -N '' -f ecdsa; ssh-keygen -q -t ed25519 -N '' -f certified; "
              "ssh-keygen -q -s a -I box -h -n 127.0.0.1 certified.pub 2>/dev/null");
    if (!GetParam().has_certificate) return;
    certified_ =
        std::make_unique<Sshd>("HostCertificate " + folder + "/certified-cert.pub\nHostKey " + folder + "/certified");
  }
  const Sshd& server() const { return certified_ ? *certified_ : keys_; }

  std::string known_hosts() const {
    const std::map<char, std::string> words = {
        {'N', "[127.0.0.1]:" + std::to_string(server().port())},
        {'K', certified_ ? key(keys_, "certified") : keys_.host_key_line()},
        {'O', key(keys_, "other")},
        {'E', key(keys_, "ecdsa")},
        {'A', key(keys_, "a")},
        {'B', key(keys_, "b")},
    };
    std::string out;
    for (const char* c = GetParam().known_hosts; *c != '\0'; ++c)
      out += *c == '%' ? words.at(*++c) : std::string(1, *c);
    return out;
  }
  // A config with known_hosts of its own for each way and policy, so that none sees what another one has stored.
  std::string lines(const std::string& way, const std::string& policy) {
    const std::string file = "known_" + way + "_" + policy;
    server().folder().write(file, known_hosts());
    const std::string path = server().folder().path(file);
    if (GetParam().hashed) output_of("ssh-keygen -q -H -f " + path + " 2>/dev/null && rm " + path + ".old");
    std::string out = "Host box\n UserKnownHostsFile " + path + "\n " + GetParam().config + "\n";
    if (!policy.empty()) out += " StrictHostKeyChecking " + policy + "\n";
    return out;
  }
  Task<void> log_in(Transport& transport, std::string policy, SshTarget target, std::map<std::string, bool>& accepted) {
    const std::string command = "echo in";
    auto channel = co_await transport.open(target, command, Clock::now() + std::chrono::seconds(40));
    if (!channel) co_return;
    const auto outcome = co_await converse(loop_.io, std::move(*channel), "");
    if (outcome.out == "in\n") accepted[policy] = true;
  }
  Task<std::map<std::string, bool>> log_in_with_all(Transport& transport, std::map<std::string, SshTarget> targets) {
    std::map<std::string, bool> accepted;
    TaskGroup group(loop_.io.get_executor());
    for (const auto& [policy, target] : targets) group.spawn(log_in(transport, policy, target, accepted));
    co_await group.join();
    co_return accepted;
  }
  // The policies with which drun logs in.
  std::map<std::string, bool> drun(Transport& transport, const std::string& way) {
    std::map<std::string, SshTarget> targets;
    for (const char* policy : kPolicies) targets[policy] = server().target(lines(way, policy));
    return loop_.run(log_in_with_all(transport, std::move(targets)));
  }
  // Those with which ssh does. drun's policy is accept-new where none is set.
  std::map<std::string, bool> ssh() {
    std::string script;
    for (const char* policy : kPolicies) {
      const std::string out = server().folder().path(std::string("out_") + policy);
      const std::string own = *policy == '\0' ? "accept-new" : policy;
      script += "ssh -oBatchMode=yes -oStrictHostKeyChecking=" + own + " -F " + server().config(lines("ssh", policy)) +
                " box echo in >" + out + " 2>/dev/null & ";
    }
    output_of(script + "wait");
    std::map<std::string, bool> accepted;
    for (const char* policy : kPolicies) {
      if (server().folder().read(std::string("out_") + policy) == "in\n") accepted[policy] = true;
    }
    return accepted;
  }

  Sshd keys_;
  std::unique_ptr<Sshd> certified_;
  Loop loop_;
};

TEST_P(HostKeys, DrunAcceptsNothingThatSshRefuses) {
  auto ssh_accepts = ssh();
  for (const std::string way : {"libssh", "openssh"}) {
    const auto transport = way == "libssh" ? loop_.libssh() : loop_.openssh();
    auto drun_accepts = drun(*transport, way);
    for (const std::string policy : kPolicies) {
      EXPECT_TRUE(ssh_accepts[policy] || !drun_accepts[policy]) << way << " accepts with policy '" << policy << "'";
      if (policy == "no") continue;
      // Policies other than `no` accept the same keys.
      EXPECT_EQ(drun_accepts[policy], ssh_accepts[policy]) << way << ", policy '" << policy << "'";
    }
  }
}

INSTANTIATE_TEST_SUITE_P(KnownHosts, HostKeys, ::testing::ValuesIn(kStates),
                         [](const auto& test) { return std::string(test.param.name); });

}  // namespace
}  // namespace drun::transport::testing
