// The libssh transport beyond the contract of all transports: keys, agents, host keys, deadlines.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <boost/asio/ip/tcp.hpp>
#include <cstdlib>
#include <filesystem>
#include <iterator>

#include "base/text.h"
#include "tests/integration/transport/sshd_fixture.h"

#if defined(__SANITIZE_ADDRESS__)
// Before 0.11 libssh loses its list of an agent's keys when it makes another one.
extern "C" const char* __lsan_default_suppressions() { return "leak:ssh_buffer_new\n"; }
#endif

namespace drun::transport::testing {
namespace {

using tcp = asio::ip::tcp;

class LibsshTransport : public ::testing::Test {
 protected:
  std::string out_of(const SshTarget& target, const std::string& command = "echo in") {
    auto channel = loop_.open(*transport_, target, command);
    if (!channel) {
      error_ = channel.error();
      return "";
    }
    return loop_.run(converse(loop_.io, std::move(*channel), "")).out;
  }
  Error error_of(const SshTarget& target, std::chrono::milliseconds limit = std::chrono::seconds(20)) {
    auto channel = loop_.open(*transport_, target, "true", limit);
    if (!channel) return channel.error();
    loop_.run(converse(loop_.io, std::move(*channel), ""));
    return Error();
  }
  std::string path(const std::string& name) const { return sshd_.folder().path(name); }
  std::string name() const { return "[127.0.0.1]:" + std::to_string(sshd_.port()); }
  // Makes a key of `type` that the server accepts.
  std::string allowed_key(const std::string& file, const std::string& options) {
    output_of("ssh-keygen -q " + options + " -f " + path(file));
    sshd_.folder().write("authorized_keys", sshd_.folder().read(file + ".pub"));
    return path(file);
  }

  Sshd sshd_;
  Loop loop_;
  std::unique_ptr<Transport> transport_ = loop_.libssh();
  Error error_;
};

// An ssh-agent on a socket of the test's own.
class Agent {
 public:
  explicit Agent(const TempFolder& folder)
      : path_(folder.path("agent")), daemon_({"/usr/bin/ssh-agent", "-D", "-a", path_}) {
    for (int i = 0; i < 500 && ::access(path_.c_str(), F_OK) != 0; ++i) ::usleep(10000);
  }
  const std::string& path() const { return path_; }
  void add(const std::string& key) { output_of("SSH_AUTH_SOCK=" + path_ + " ssh-add -q " + key + " 2>/dev/null"); }

 private:
  std::string path_;
  Daemon daemon_;
};

// Passes requests on to an agent, but refuses the first `n_refused` to sign; with -1 it answers none of these.
class AgentProxy {
 public:
  AgentProxy(const TempFolder& folder, const Agent& agent, int n_refused)
      : path_(folder.path("agent-proxy" + std::to_string(n_refused))) {
    folder.write("agent_proxy.py",
                 "import socket, sys, threading\n"
                 "s = socket.socket(socket.AF_UNIX); s.bind(sys.argv[1]); s.listen(9)\n"
                 "left = int(sys.argv[3])\n"
                 "def serve(c):\n"
                 "    global left\n"
                 "    while d := c.recv(65536):\n"
                 "        if d[4] == 13 and left != 0:\n"
                 "            left -= 1\n"
                 "            if left >= 0:\n"
                 "                c.sendall(bytes([0, 0, 0, 1, 5]))\n"
                 "            continue\n"
                 "        a = socket.socket(socket.AF_UNIX); a.connect(sys.argv[2]); a.sendall(d)\n"
                 "        c.sendall(a.recv(65536))\n"
                 "while True: threading.Thread(target=serve, args=(s.accept()[0],), daemon=True).start()\n");
    const std::string script = folder.path("agent_proxy.py");
    daemon_.emplace(
        std::vector<std::string>{"/usr/bin/env", "python3", script, path_, agent.path(), std::to_string(n_refused)});
    for (int i = 0; i < 1000 && ::access(path_.c_str(), F_OK) != 0; ++i) ::usleep(10000);
  }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
  std::optional<Daemon> daemon_;
};

TEST_F(LibsshTransport, LogsInWithEveryKindOfKey) {
  EXPECT_EQ(out_of(sshd_.target("IdentityFile " + allowed_key("rsa", "-t rsa -b 2048 -N ''"))), "in\n");
  EXPECT_EQ(out_of(sshd_.target("IdentityFile " + allowed_key("ecdsa", "-t ecdsa -N ''"))), "in\n");
  EXPECT_EQ(out_of(sshd_.target("IdentityFile " + allowed_key("pem", "-t rsa -b 2048 -m PEM -N ''"))), "in\n");
}

// A list of a crypto policy has kinds of keys that libssh does not know.
TEST_F(LibsshTransport, OffersKeysOfTheAcceptedAlgorithmsOnly) {
  const std::string key = allowed_key("rsa", "-t rsa -b 2048 -N ''");
  Agent agent(sshd_.folder());
  agent.add(key);
  const std::string by_file = "\nIdentityAgent none\nIdentityFile " + key,
                    by_agent = "\nIdentityFile none\nIdentityAgent " + agent.path();
  for (const auto& way : {by_file, by_agent}) {
    const std::string policy = "PubkeyAcceptedAlgorithms sk-ssh-ed25519-cert-v01@openssh.com,of-tomorrow@example.org,";
    EXPECT_EQ(out_of(sshd_.target(policy + "rsa-sha2-256,rsa-sha2-512" + way)), "in\n") << way << error_.cause;
    EXPECT_NE(error_of(sshd_.target(policy + "ssh-ed25519" + way)).cause, "") << way;
  }
  const auto skipped = [&](const std::string& option) { return "skipped " + key + " (excluded by " + option + ")"; };
  EXPECT_THAT(error_of(sshd_.target("PubkeyAcceptedAlgorithms ssh-ed25519" + by_file)).cause,
              ::testing::HasSubstr(skipped("PubkeyAcceptedAlgorithms")));
  EXPECT_THAT(error_of(sshd_.target("RequiredRSASize 8192" + by_file)).cause,
              ::testing::HasSubstr(skipped("RequiredRSASize")));
  const std::string denied = path("denied");
  output_of("ssh-keygen -q -t ed25519 -N '' -f " + denied);
  const auto error =
      error_of(sshd_.target("PubkeyAcceptedAlgorithms ssh-ed25519" + by_file + "\nIdentityFile " + denied));
  EXPECT_THAT(error.cause, ::testing::HasSubstr("(tried " + denied)) << "the server denied it";
  EXPECT_THAT(error.cause, ::testing::EndsWith(skipped("PubkeyAcceptedAlgorithms")));
}

TEST_F(LibsshTransport, NamesEveryKeyThatItTried) {
  const std::string locked = allowed_key("locked", "-t ed25519 -N secret");
  const auto error = error_of(sshd_.target("IdentityFile " + locked));
  EXPECT_EQ(error.code, Errc::kUnreachable);
  EXPECT_EQ(error.subject, "box");
  EXPECT_NE(error.cause.find("login: permission denied as "), std::string::npos) << error.cause;
  EXPECT_NE(error.cause.find("tried " + sshd_.key()), std::string::npos) << error.cause;
  EXPECT_NE(error.cause.find(locked + " (encrypted, and not in ssh-agent)"), std::string::npos) << error.cause;
  EXPECT_TRUE(starts_with(error.hint, "ssh -F ")) << error.hint;
  EXPECT_TRUE(error.hint.ends_with(" box true")) << error.hint;
}

TEST_F(LibsshTransport, UsesAKeyThatOnlyTheAgentCanOpen) {
  const std::string locked = allowed_key("locked", "-t ed25519 -N ''");
  Agent agent(sshd_.folder());
  agent.add(locked);
  output_of("ssh-keygen -q -p -P '' -N secret -f " + locked);
  EXPECT_EQ(out_of(sshd_.target("IdentityAgent " + agent.path() + "\nIdentityFile " + locked)), "in\n") << error_.cause;
  // Works even if the config names only the public half.
  EXPECT_EQ(
      out_of(sshd_.target("IdentitiesOnly yes\nIdentityAgent " + agent.path() + "\nIdentityFile " + locked + ".pub")),
      "in\n")
      << error_.cause;
  // Works even if no IdentityFile names it.
  EXPECT_EQ(out_of(sshd_.target("IdentityAgent " + agent.path() + "\nIdentityFile none")), "in\n") << error_.cause;
}

TEST_F(LibsshTransport, UsesAnRsaKeyOfTheAgent) {
  const std::string key = allowed_key("rsa", "-t rsa -b 2048 -N ''");
  Agent agent(sshd_.folder());
  agent.add(key);
  ::unlink(key.c_str());
  EXPECT_EQ(out_of(sshd_.target("IdentityAgent " + agent.path())), "in\n") << error_.cause;
}

TEST_F(LibsshTransport, HonoursIdentitiesOnlyBesideAnAgentFullOfForeignKeys) {
  Agent agent(sshd_.folder());
  for (int i = 0; i < 7; ++i) {
    const std::string key = path("foreign" + std::to_string(i));
    output_of("ssh-keygen -q -t ed25519 -N '' -f " + key);
    agent.add(key);
  }
  const std::string with_agent = "IdentityAgent " + agent.path() + "\n";
  EXPECT_EQ(out_of(sshd_.target("IdentitiesOnly yes\n" + with_agent)), "in\n") << error_.cause;
  const auto error = error_of(sshd_.target(with_agent));
  EXPECT_NE(error.cause.find("Too many authentication failures"), std::string::npos) << error.cause;
  EXPECT_NE(error.hint.find("IdentitiesOnly yes"), std::string::npos) << error.hint;
  // A key given with -i comes before keys that are not named.
  SshTarget target = sshd_.target(with_agent);
  target.identity_by_option = true;
  EXPECT_EQ(out_of(target), "in\n") << error_.cause;
  // The agent's key is offered first if the config names it.
  agent.add(sshd_.key());
  EXPECT_EQ(out_of(sshd_.target(with_agent)), "") << "keys are listed once per run";
  transport_ = loop_.libssh();
  EXPECT_EQ(out_of(sshd_.target(with_agent)), "in\n") << error_.cause;
}

TEST_F(LibsshTransport, GoesOnWithFilesWhenTheAgentIsDead) {
  EXPECT_EQ(out_of(sshd_.target("IdentityAgent " + path("no-such-agent"))), "in\n") << error_.cause;
}

TEST_F(LibsshTransport, DoesNotWaitForASilentAgentBeyondTheDeadline) {
  // The agent lists the key, but does not answer when asked to sign.
  const std::string key = allowed_key("rsa", "-t rsa -b 2048 -N ''");
  Agent agent(sshd_.folder());
  agent.add(key);
  const AgentProxy mute(sshd_.folder(), agent, -1);
  ::unlink(key.c_str());
  const auto start = Clock::now();
  const auto error = error_of(sshd_.target("IdentityAgent " + mute.path()), std::chrono::seconds(4));
  EXPECT_LT(Clock::now() - start, std::chrono::seconds(8));
  EXPECT_NE(error.cause.find("login: no answer within 4 s"), std::string::npos) << error.cause;
}

// As one whose user does not confirm the use of a key, or whose card is not there.
TEST_F(LibsshTransport, GoesOnWithTheNextKeyIfTheAgentRefusesToSign) {
  std::string allowed;
  Agent agent(sshd_.folder());
  for (const char* name : {"first", "second"}) {
    const std::string key = allowed_key(name, "-t ed25519 -N '' -C " + std::string(name));
    allowed += sshd_.folder().read(std::string(name) + ".pub");
    agent.add(key);
    ::unlink(key.c_str());
  }
  sshd_.folder().write("authorized_keys", allowed);
  for (const int n_refused : {1, 2}) {
    const AgentProxy proxy(sshd_.folder(), agent, n_refused);
    const auto target = sshd_.target("IdentityFile none\nIdentityAgent " + proxy.path());
    EXPECT_EQ(out_of(target), n_refused == 1 ? "in\n" : "") << error_.message();
  }
  EXPECT_NE(error_.cause.find("skipped first (ssh-agent refused to sign), second (ssh-agent refused to sign)"),
            std::string::npos)
      << error_.cause;
}

TEST_F(LibsshTransport, SaysWhichLineHoldsTheOldKey) {
  sshd_.folder().write("known_hosts", "# mine\n" + name() + " " + sshd_.host_key_line() + "\n");
  sshd_.restart_with_new_host_key();
  const auto error = error_of(sshd_.target("StrictHostKeyChecking no"));
  EXPECT_NE(error.cause.find("host key: has changed: ssh-ed25519 SHA256:"), std::string::npos) << error.cause;
  EXPECT_NE(error.cause.find(sshd_.known_hosts() + ":2"), std::string::npos) << error.cause;
  EXPECT_EQ(error.hint, "ssh-keygen -R '" + name() + "' -f " + sshd_.known_hosts());
  // The hint works.
  output_of(error.hint + " 2>/dev/null");
  EXPECT_EQ(out_of(sshd_.target()), "in\n") << error_.cause;
}

TEST_F(LibsshTransport, TellsWhatToTypeForAnUnknownKey) {
  const auto error = error_of(sshd_.target("StrictHostKeyChecking ask"));
  EXPECT_NE(error.cause.find("host key: unknown ssh-ed25519 SHA256:"), std::string::npos) << error.cause;
  output_of(error.hint + " 2>/dev/null");
  EXPECT_EQ(out_of(sshd_.target("StrictHostKeyChecking ask")), "in\n") << error_.cause;
  EXPECT_TRUE(loop_.notices.empty());
}

TEST_F(LibsshTransport, LeavesAnUnknownKeyToOpensshWhereKeyscanWouldNotFindTheHost) {
  const std::string strict = "StrictHostKeyChecking yes\n";
  for (const auto& line : {std::string("HostKeyAlias the-box"), sshd_.proxy_command()}) {
    const auto target = sshd_.target(strict + line);
    EXPECT_EQ(error_of(target).hint,
              "ssh -o StrictHostKeyChecking=ask -F " + target.config_file + " " + target.alias + " true");
  }
  EXPECT_EQ(error_of(sshd_.target(strict + "UserKnownHostsFile none")).hint,
            "the host's key in a file that UserKnownHostsFile or GlobalKnownHostsFile names");
}

TEST_F(LibsshTransport, TrustsWhatOpensshTrusts) {
  const std::string key = sshd_.host_key_line();
  const std::string strict = "StrictHostKeyChecking yes\n";
  sshd_.folder().write("known_hosts", "127.0.0.1 " + key + "\n");  // no port
  EXPECT_EQ(out_of(sshd_.target(strict)), "in\n") << error_.cause;
  sshd_.folder().write("known_hosts", name() + " " + key + "\n");
  output_of("ssh-keygen -q -H -f " + sshd_.known_hosts() + " 2>/dev/null");
  ASSERT_TRUE(starts_with(sshd_.folder().read("known_hosts"), "|1|"));
  EXPECT_EQ(out_of(sshd_.target(strict)), "in\n") << error_.cause;
  sshd_.folder().write("known_hosts", "[127.0.0.*]:* " + key + "\n");
  EXPECT_EQ(out_of(sshd_.target(strict)), "in\n") << error_.cause;
  sshd_.folder().write("known_hosts", "");
  sshd_.folder().write("second", name() + " " + key + "\n");
  EXPECT_EQ(out_of(sshd_.target(strict + "UserKnownHostsFile " + sshd_.known_hosts() + " " + path("second"))), "in\n");
  sshd_.folder().write("known_hosts", "the-box " + key + "\n");
  EXPECT_EQ(out_of(sshd_.target(strict + "HostKeyAlias the-box")), "in\n") << error_.cause;
  sshd_.folder().write("known_hosts", "@revoked * " + key + "\n" + name() + " " + key + "\n");
  EXPECT_EQ(out_of(sshd_.target(strict)), "");
  EXPECT_NE(error_.cause.find("revoked"), std::string::npos) << error_.cause;
}

TEST_F(LibsshTransport, AsksForTheKindOfKeyThatIsKnown) {
  output_of("ssh-keygen -q -t ecdsa -N '' -f " + path("ecdsa_host"));
  Sshd both("HostKey " + path("ecdsa_host"));
  std::string line = sshd_.folder().read("ecdsa_host.pub");
  both.folder().write("known_hosts", "[127.0.0.1]:" + std::to_string(both.port()) + " " + line);
  EXPECT_EQ(out_of(both.target("StrictHostKeyChecking yes")), "in\n") << error_.cause;
}

TEST_F(LibsshTransport, StoresAHashedNameWhereTheConfigAsksForIt) {
  EXPECT_EQ(out_of(sshd_.target("HashKnownHosts yes")), "in\n");
  EXPECT_TRUE(starts_with(sshd_.folder().read("known_hosts"), "|1|"));
  EXPECT_NE(output_of("ssh-keygen -F '" + name() + "' -f " + sshd_.known_hosts()).find("found"), std::string::npos);
  EXPECT_EQ(out_of(sshd_.target("StrictHostKeyChecking yes")), "in\n") << error_.cause;
}

TEST_F(LibsshTransport, KeepsAKeyInMemoryWhereTheFileCannotBeWritten) {
  const std::string lines = "UserKnownHostsFile /proc/no/known_hosts";
  EXPECT_EQ(out_of(sshd_.target(lines)), "in\n") << error_.cause;
  EXPECT_EQ(out_of(sshd_.target(lines)), "in\n") << error_.cause;
  ASSERT_EQ(loop_.notices.size(), 1u);
  EXPECT_NE(loop_.notices[0].find("good for this run only"), std::string::npos) << loop_.notices[0];
  sshd_.restart_with_new_host_key();
  EXPECT_EQ(out_of(sshd_.target(lines)), "");
}

TEST_F(LibsshTransport, MakesTheFolderOfKnownHosts) {
  const std::string file = path("new-folder/known_hosts");
  EXPECT_EQ(out_of(sshd_.target("UserKnownHostsFile " + file)), "in\n") << error_.cause;
  struct stat info {};
  ASSERT_EQ(::stat(path("new-folder").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0700u);
  ASSERT_EQ(::stat(file.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
}

TEST_F(LibsshTransport, HandsOverToOpensshWhatLibsshCannotDo) {
  const auto target = sshd_.target("Match exec true\n Compression yes\nMatch all");
  for (int i = 0; i < 2; ++i) EXPECT_EQ(out_of(target), "in\n") << error_.cause;
  ASSERT_EQ(loop_.notices.size(), 1u) << "one for one reason";
  EXPECT_NE(loop_.notices[0].find("Match exec in "), std::string::npos) << loop_.notices[0];
}

TEST_F(LibsshTransport, HandsOverAHostThatMayKnowKerberos) {
  Sshd by_ticket("GSSAPIAuthentication yes");
  by_ticket.folder().write("authorized_keys", "");
  EXPECT_NE(error_of(by_ticket.target()).cause.find("login: permission denied"), std::string::npos);
  EXPECT_EQ(join(loop_.notices, "\n").find("gssapi"), std::string::npos);
  EXPECT_EQ(out_of(by_ticket.target("GSSAPIAuthentication yes")), "") << "there is no ticket";
  EXPECT_NE(join(loop_.notices, "\n").find("OpenSSH's own client (its server offers gssapi"), std::string::npos);
}

TEST_F(LibsshTransport, RefusesShortRsaKeys) {
  const std::string key = allowed_key("rsa", "-t rsa -b 2048 -N ''");
  EXPECT_EQ(out_of(sshd_.target("RequiredRSASize 2048\nIdentityFile " + key)), "in\n") << error_.cause;
  EXPECT_EQ(out_of(sshd_.target("RequiredRSASize 3072\nIdentityFile " + key)), "");
}

TEST_F(LibsshTransport, HandsOverAHostWhoseKeyIsCertified) {
  output_of("ssh-keygen -q -t ed25519 -N '' -f " + path("ca"));
  output_of("ssh-keygen -q -s " + path("ca") + " -I box -h -n 127.0.0.1 " + path("host_key.pub") + " 2>/dev/null");
  Sshd certified("HostCertificate " + path("host_key-cert.pub") + "\nHostKey " + path("host_key"));
  certified.folder().write("known_hosts", "@cert-authority * " + sshd_.folder().read("ca.pub"));
  EXPECT_EQ(out_of(certified.target("StrictHostKeyChecking yes")), "in\n");
  ASSERT_EQ(loop_.notices.size(), 1u);
  EXPECT_NE(loop_.notices[0].find("@cert-authority"), std::string::npos);
}

TEST_F(LibsshTransport, GivesUpOnASilentServerAtTheDeadline) {
  asio::io_context io;
  tcp::acceptor silent(io, tcp::endpoint(asio::ip::address_v4::loopback(), 0));  // the backlog accepts
  const auto port = std::to_string(silent.local_endpoint().port());
  const auto start = Clock::now();
  const auto error = error_of(sshd_.target("Host box\n Port " + port), std::chrono::milliseconds(1200));
  EXPECT_LT(Clock::now() - start, std::chrono::milliseconds(2500));
  EXPECT_EQ(error.cause, "handshake: no answer within 1 s; the port is open, but no ssh server speaks");
  // Here ConnectTimeout of the config is the shorter limit.
  const auto shorter = error_of(sshd_.target("ConnectTimeout 1\nHost box\n Port " + port));
  EXPECT_EQ(shorter.cause, error.cause);
}

TEST_F(LibsshTransport, TriesAgainWhenTheServerHangsUpBeforeItsBanner) {
  // Drops two connections and relays the third one.
  sshd_.folder().write("dropper.py",
                       "import os, socket, sys, threading\n"
                       "s = socket.socket(); s.bind(('127.0.0.1', int(sys.argv[1]))); s.listen(9)\n"
                       "for i in range(2): s.accept()[0].close()\n"
                       "c = s.accept()[0]; t = socket.create_connection(('127.0.0.1', int(sys.argv[2])))\n"
                       "def copy(a, b):\n"
                       "    while d := a.recv(65536): b.sendall(d)\n"
                       "    b.shutdown(socket.SHUT_WR)\n"
                       "threading.Thread(target=copy, args=(c, t), daemon=True).start()\n"
                       "copy(t, c)\n");
  const int port = free_port();
  Daemon dropper({"/usr/bin/env", "python3", path("dropper.py"), std::to_string(port), std::to_string(sshd_.port())});
  const std::string hex_port = ":" + [port] {
    char text[8];
    std::snprintf(text, sizeof text, "%04X", static_cast<unsigned>(port));
    return std::string(text);
  }();
  for (int i = 0; i < 1000; ++i) {  // polls for the listener without connecting to it
    if (output_of("cat /proc/net/tcp").find(hex_port + " 00000000:0000 0A") != std::string::npos) break;
    ::usleep(10000);
  }
  EXPECT_EQ(out_of(sshd_.target("Host box\n Port " + std::to_string(port))), "in\n") << error_.cause;
}

TEST_F(LibsshTransport, TriesAgainWhenAJumpHostDropsIts) {
  // Fails twice with ssh's message about a jump host that hangs up before its banner, then connects. ConnectTimeout
  // holds for each try, not for all.
  const std::string first = "tries = open('" + path("tries") +
                            "', 'a+'); tries.write('x'); tries.seek(0)\n"
                            "if len(tries.read()) < 3:\n"
                            "    time.sleep(2.1)\n"
                            "    sys.exit('kex_exchange_identification: Connection closed by remote host\\r\\n'\n"
                            "             'Connection closed by 192.0.2.7 port 22\\r')\n"
                            "tries.flush()\n";
  EXPECT_EQ(out_of(sshd_.target("ConnectTimeout 4\n" + sshd_.proxy_command(first))), "in\n") << error_.message();
  EXPECT_EQ(sshd_.folder().read("tries"), "xxx");
}

TEST_F(LibsshTransport, TriesAJumpHostOnceThatRefusesTheLogin) {
  const std::string first = "open('" + path("tries") +
                            "', 'a').write('x')\n"
                            "sys.exit('me@jump: Permission denied (publickey).\\r\\n'\n"
                            "         'kex_exchange_identification: Connection closed by remote host\\r\\n'\n"
                            "         'Connection closed by UNKNOWN port 65535\\r')\n";
  const Error error = error_of(sshd_.target(sshd_.proxy_command(first)));
  EXPECT_NE(error.context.find("the proxy said: me@jump: Permission denied (publickey)."), std::string::npos)
      << error.message() << "\n"
      << error.context;
  EXPECT_EQ(sshd_.folder().read("tries"), "x");
}

// libssh takes letters, digits, '-' and '.' alone.
TEST_F(LibsshTransport, TakesTheNamesThatOpensshTakes) {
  std::string proxy = sshd_.proxy_command();
  proxy.replace(proxy.find("%h"), 2, "127.0.0.1");
  auto target = sshd_.target(proxy);
  target.host_name = "gpu_node_1";
  EXPECT_EQ(out_of(target), "in\n") << error_.message();
  target.user = "CORP\\alice";
  EXPECT_NE(error_of(target).message().find("login: permission denied as CORP\\alice"), std::string::npos)
      << error_.message();
}

TEST_F(LibsshTransport, LeavesNoDescriptorBehind) {
  const auto n_open = [] {  // in this process: a shell could run before its pipe's other end is closed here
    const std::filesystem::directory_iterator open("/proc/self/fd");
    return std::distance(begin(open), end(open));
  };
  Agent agent(sshd_.folder());
  agent.add(sshd_.key());
  const auto good = sshd_.target("IdentityAgent " + agent.path());
  out_of(good);
  const auto before = n_open();
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(out_of(good), "in\n");
    error_of(sshd_.target("StrictHostKeyChecking yes\nUserKnownHostsFile /dev/null"));
    error_of(sshd_.target("IdentityFile none\nHost box\n IdentityFile none"));
    error_of(sshd_.target("ProxyCommand exit 1"));
  }
  EXPECT_LE(n_open(), before);  // a descriptor of the first session may have been closed since
}

TEST_F(LibsshTransport, CloseWhileWritingCancelsTheWrite) {
  auto channel = loop_.open(*transport_, sshd_.target(), "sleep 100");
  ASSERT_TRUE(channel);
  auto writer = [](asio::io_context& io, Channel& c) -> Task<std::string> {
    const std::string much(16u << 20, 'x');  // more than the peer's window
    auto closer = [](asio::io_context&, Channel& ch) -> Task<void> {
      co_await sleep_until(Clock::now() + std::chrono::milliseconds(300));
      ch.close();
    };
    TaskGroup group(io.get_executor());
    group.spawn(closer(io, c));
    const auto written = co_await c.write(asio::buffer(much));
    co_await group.join();
    co_await c.join();
    co_return written ? "written" : (written.error().code == Errc::kCanceled ? "canceled" : written.error().cause);
  };
  EXPECT_EQ(loop_.run(writer(loop_.io, **channel)), "canceled");
}

TEST_F(LibsshTransport, KeepsABoundedInboxForASleepingReader) {
  const std::string all_sent = path("all_sent");
  auto channel = loop_.open(*transport_, sshd_.target(), "head -c 33554432 /dev/zero; touch " + all_sent);
  ASSERT_TRUE(channel);
  auto reader = [](std::unique_ptr<Channel> c, std::string mark) -> Task<std::size_t> {
    co_await sleep_until(Clock::now() + std::chrono::milliseconds(1000));
    EXPECT_NE(::access(mark.c_str(), F_OK), 0) << "the host could send 32 MiB to a reader that sleeps";
    std::size_t n = 0;
    std::vector<char> buffer(1 << 20);
    for (;;) {
      const auto got = co_await c->read_some(asio::buffer(buffer));
      if (!got || *got == 0) break;
      n += *got;
    }
    c->close();
    co_await c->join();
    co_return n;
  };
  EXPECT_EQ(loop_.run(reader(std::move(*channel), all_sent)), 33554432u);
  EXPECT_EQ(::access(all_sent.c_str(), F_OK), 0);
}

}  // namespace
}  // namespace drun::transport::testing
