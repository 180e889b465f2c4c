#include "transport/ssh_config.h"

#include <gtest/gtest.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "base/text.h"
#include "transport/proxy.h"
#include "transport/ssh_config_parser.h"
#include "transport/ssh_config_support.h"
#include "transport/ssh_match.h"
#include "transport/ssh_tokens.h"

namespace drun::transport {
namespace {

class SshConfig : public ::testing::Test {
 protected:
  SshConfig() {
    std::string path = std::filesystem::temp_directory_path().string() + "/drun-config-XXXXXX";
    if (::mkdtemp(path.data()) == nullptr) std::abort();
    folder_ = path;
    options_.config_file = folder_ + "/config";
  }
  ~SshConfig() override { std::filesystem::remove_all(folder_); }
  void write(const std::string& name, const std::string& text) { std::ofstream(folder_ + "/" + name) << text; }
  Result<SshTarget> resolve(const std::string& config, const std::string& name = "box") {
    write("config", config);
    host_.name = name;
    return resolve_ssh_target(host_, options_);
  }
  SshTarget good(const std::string& config, const std::string& name = "box") {
    auto target = resolve(config, name);
    EXPECT_TRUE(target) << target.error().message();
    return target.value_or(SshTarget{});
  }
  std::string home() const { return ::getpwuid(::getuid())->pw_dir; }

  std::string folder_;
  Host host_;
  SshOptions options_;
};

TEST_F(SshConfig, PutsOptionBeforeHostItemBeforeConfig) {
  const std::string config = "Host box\n User config\n Port 3\n";
  EXPECT_EQ(good(config).port, 3);
  EXPECT_EQ(good(config).user, "config");
  EXPECT_FALSE(good(config).port_by_option);
  EXPECT_FALSE(good(config).user_by_item);
  host_.port = 2;
  host_.user = "item";
  EXPECT_EQ(good(config).port, 2);
  EXPECT_EQ(good(config).user, "item");
  EXPECT_TRUE(good(config).user_by_item);
  options_.port = 1;
  EXPECT_EQ(good(config).port, 1);
  EXPECT_TRUE(good(config).port_by_option);
}

TEST_F(SshConfig, TellsWhetherUserOrPortWasSetAtAll) {
  EXPECT_FALSE(good("").user_or_port_set);
  EXPECT_FALSE(good("HostName x\nIdentityFile /k\n").user_or_port_set);
  EXPECT_TRUE(good("Port 22\n").user_or_port_set);
  EXPECT_TRUE(good("User me\n").user_or_port_set);
  options_.port = 12345;
  EXPECT_TRUE(good("").user_or_port_set);
  options_.port = 0;
  host_.user = "me";
  EXPECT_TRUE(good("").user_or_port_set);
}

TEST_F(SshConfig, FillsDefaults) {
  const auto target = good("");
  EXPECT_EQ(target.host_name, "box");
  EXPECT_EQ(target.port, 22);
  EXPECT_EQ(target.user, ::getpwuid(::getuid())->pw_name);
  EXPECT_EQ(target.host_keys, HostKeyPolicy::kAcceptNew);
  EXPECT_EQ(target.identity_files.size(), 3u);
  EXPECT_EQ(target.user_known_hosts.at(0), home() + "/.ssh/known_hosts");
  EXPECT_EQ(target.connect_timeout.count(), 0);
}

TEST_F(SshConfig, ReadsNoFileForNone) {
  options_.config_file = "none";
  host_.name = "box";
  EXPECT_TRUE(resolve_ssh_target(host_, options_));
}

TEST_F(SshConfig, RefusesAConfigFileThatIsNotThere) {
  options_.config_file = folder_ + "/missing";
  host_.name = "box";
  const auto target = resolve_ssh_target(host_, options_);
  ASSERT_FALSE(target);
  EXPECT_EQ(target.error().code, Errc::kUsage);
  EXPECT_EQ(target.error().subject, folder_ + "/missing");
}

TEST_F(SshConfig, RefusesNamesThatLookLikeOptions) { EXPECT_FALSE(resolve("", "-oProxyCommand=x")); }

TEST_F(SshConfig, ReadsTheHostKeyPolicy) {
  EXPECT_EQ(good("StrictHostKeyChecking yes").host_keys, HostKeyPolicy::kStrict);
  EXPECT_EQ(good("StrictHostKeyChecking ask").host_keys, HostKeyPolicy::kStrict);
  EXPECT_EQ(good("StrictHostKeyChecking accept-new").host_keys, HostKeyPolicy::kAcceptNew);
  EXPECT_EQ(good("StrictHostKeyChecking no").host_keys, HostKeyPolicy::kOff);
  EXPECT_EQ(good("StrictHostKeyChecking off").host_keys, HostKeyPolicy::kOff);
}

TEST_F(SshConfig, TakesNoPolicyOfAJumpHostWhoseNameSshCompletes) {
  const auto target = good(
      "Host box\n ProxyJump bastion\nHost bastion\n CanonicalizeHostname yes\nMatch canonical all\n"
      " StrictHostKeyChecking yes\n");
  EXPECT_EQ(target.jump_host_keys, HostKeyPolicy::kStrict);
  EXPECT_EQ(
      good("Host box\n ProxyJump me@bastion\nMatch host bastion user me\n StrictHostKeyChecking yes\n").jump_host_keys,
      HostKeyPolicy::kStrict);
}

TEST_F(SshConfig, ReadsTheHostKeyPolicyOfTheLastJumpHost) {
  const std::string strict = "Host bastion fd00::1\n StrictHostKeyChecking yes\nHost box\n ProxyJump ";
  for (const std::string jump :
       {"bastion", "me@bastion:22", "ssh://me@bastion:22", "first,bastion", "[fd00::1]:22", "[fd00::1]"}) {
    const auto target = good(strict + jump);
    EXPECT_EQ(target.host_keys, HostKeyPolicy::kAcceptNew) << jump;
    EXPECT_EQ(target.jump_host_keys, HostKeyPolicy::kStrict) << jump;
    EXPECT_EQ(join(Proxy::command_for(target), " ").find("StrictHostKeyChecking"), std::string::npos) << jump;
  }
  for (const std::string jump : {"bastion,other", "other"}) {
    const auto target = good(strict + jump + "\n StrictHostKeyChecking yes");
    EXPECT_EQ(target.jump_host_keys, HostKeyPolicy::kAcceptNew) << jump;
    EXPECT_NE(join(Proxy::command_for(target), " ").find(" -oStrictHostKeyChecking=accept-new "), std::string::npos)
        << jump;
  }
  EXPECT_EQ(good("Match exec x\nHost box\n ProxyJump other").jump_host_keys, HostKeyPolicy::kStrict);
}

TEST_F(SshConfig, GoesThroughJumpHostsAsOpensshDoes) {
  const std::string head = "Host box\n HostName fd00::9\n User bob\n Port 99\n ProxyJump ";
  const auto command = [&](const std::string& jumps) { return join(Proxy::command_for(good(head + jumps)), " "); };
  const std::string config = " -F " + options_.config_file;
  const std::string always =
      "ssh -oBatchMode=yes -oClearAllForwardings=yes -oControlMaster=no -oControlPath=none "
      "-oLogLevel=INFO -oStrictHostKeyChecking=accept-new" +
      config;
  const std::string to = " -W [fd00::9]:99";
  EXPECT_EQ(command("jump"), always + to + " -- jump");
  EXPECT_EQ(command("a@b@[::1]:44"), always + to + " -l a@b -p 44 -- ::1");
  EXPECT_EQ(command("%n.gw,me@c:3,u%r%%@gw-%p"), always + " -J box.gw,me@c:3" + to + " -l ubob% -- gw-99");
  EXPECT_EQ(command("ssh://x%2By@j:22"), always + to + " -- ssh://x%2By@j:22");
  EXPECT_EQ(command("none"), "");
  EXPECT_EQ(good(head + "%e@j").needs_openssh.substr(0, 16), "unknown token %e");
  for (const std::string bad : {"::1", "a,b,", "a,,b", "::1,b", "[::1", "@j"}) {
    const auto refused = resolve(head + bad);
    ASSERT_FALSE(refused) << bad;
    EXPECT_NE(refused.error().cause.find("ProxyJump: not a host"), std::string::npos) << refused.error().message();
  }
}

TEST_F(SshConfig, RunsAProxyCommandInTheUsersShell) {
  const char* shell = ::getenv("SHELL");
  const std::string before = shell == nullptr ? "" : shell;
  const auto command = [&] {
    return join(Proxy::command_for(good("ProxyCommand nc %h %p\nHost box\n Port 9\n")), " ");
  };
  ::setenv("SHELL", "/usr/bin/fish", 1);
  EXPECT_EQ(command(), "/usr/bin/fish -c exec nc box 9");
  ::unsetenv("SHELL");
  EXPECT_EQ(command(), "/bin/sh -c exec nc box 9");
  if (shell != nullptr) ::setenv("SHELL", before.c_str(), 1);
}

TEST_F(SshConfig, KnowsThatOnlyOpensshEvaluatesAllLines) {
  EXPECT_TRUE(good("Match exec x\n User y\n").is_partial);
  EXPECT_TRUE(good("CanonicalizeHostname yes\n").is_partial);
  EXPECT_TRUE(good("CanonicalizeHostname always\n").is_partial);
  EXPECT_FALSE(good("CanonicalizeHostname none\n").is_partial);
  EXPECT_FALSE(good("VerifyHostKeyDNS yes\n").is_partial);
}

TEST_F(SshConfig, ExpandsTokensInPathsAndProxyCommand) {
  ::setenv("DRUN_TEST_FOLDER", "/keys", 1);
  const std::string common = "HostName real.example.org\nUser bob\nPort 77\n";
  EXPECT_EQ(
      good(common + "IdentityFile %d/%h-%n-%r-%p-%u-%i\n").identity_files.at(0),
      home() + "/real.example.org-box-bob-77-" + ::getpwuid(::getuid())->pw_name + "-" + std::to_string(::getuid()));
  EXPECT_EQ(good("IdentityFile ${DRUN_TEST_FOLDER}/k%%\n").identity_files.at(0), "/keys/k%");
  EXPECT_EQ(good("IdentityFile ~/k\n").identity_files.at(0), home() + "/k");
  EXPECT_EQ(good("UserKnownHostsFile ~/kh.%k /b\nHostKeyAlias al\n").user_known_hosts,
            (std::vector<std::string>{home() + "/kh.al", "/b"}));
  EXPECT_EQ(good(common + "ProxyCommand nc --user=%r \"%h\" %p %%\n").proxy_command,
            "nc --user=bob \"real.example.org\" 77 %");
  EXPECT_EQ(good("IdentityAgent $DRUN_TEST_FOLDER\n").identity_agent, "/keys");
  EXPECT_EQ(good("IdentityAgent SSH_AUTH_SOCK\n").identity_agent, "");
}

TEST_F(SshConfig, PutsTheKeyOfTheOptionFirst) {
  options_.identity_file = "/by/option";
  const auto target = good("IdentityFile /by/config\n");
  EXPECT_EQ(target.identity_files, (std::vector<std::string>{"/by/option", "/by/config"}));
  EXPECT_TRUE(target.identity_by_option);
}

TEST_F(SshConfig, LeavesToOpensshWhatLibsshCannotDo) {
  const char* lines[] = {"CertificateFile /c",
                         "PKCS11Provider /lib/p.so",
                         "SecurityKeyProvider /lib/sk.so",
                         "ProxyUseFdpass yes",
                         "CanonicalizeHostname yes",
                         "KnownHostsCommand /bin/kh %H",
                         "HostbasedAuthentication yes",
                         "VerifyHostKeyDNS yes",
                         "PubkeyAuthentication no",
                         "PreferredAuthentications password",
                         "PubkeyAcceptedAlgorithms +ssh-rsa",
                         "PubkeyAcceptedAlgorithms ssh-ed25519,rsa-sha2-256",
                         "PubkeyAcceptedAlgorithms ssh-ed25519,ssh-rsa",
                         "PubkeyAcceptedAlgorithms ssh-ed25519-cert-v01@openssh.com,sk-ssh-ed25519@openssh.com",
                         "Ciphers +aes128-cbc",
                         "MACs -hmac-sha1",
                         "KexAlgorithms ^curve25519-sha256",
                         "HostKeyAlgorithms +ssh-rsa",
                         "IdentityFile /keys/%C",
                         "Match exec true\n Port 5",
                         "Match final exec true\n Port 5",
                         "Match tagged x\n Port 5"};
  for (const auto* line : lines) EXPECT_NE(good(line).needs_openssh, "") << line;
  EXPECT_EQ(good("Port 5\nMatch exec \"test -f /x\"\n User y\n").needs_openssh,
            "Match exec in " + folder_ + "/config:2");
}

TEST_F(SshConfig, KeepsLibsshWhereSuchKeywordsChangeNothing) {
  const char* lines[] = {"CertificateFile none",
                         "PKCS11Provider none",
                         "CanonicalizeHostname no",
                         "HostbasedAuthentication no",
                         "GSSAPIAuthentication yes",
                         "ControlPath ~/.ssh/%C",
                         "ControlMaster auto",
                         "PreferredAuthentications publickey,password",
                         "SendEnv LANG LC_*",
                         "SomethingFromTheFuture 3",
                         "Ciphers aes128-ctr",
                         "PubkeyAuthentication yes",
                         "Match host other exec true\n Port 5",
                         "Match canonical exec true\n Port 5",
                         "PubkeyAcceptedAlgorithms ssh-ed25519,rsa-sha2-512",
                         "CASignatureAlgorithms ssh-ed25519",
                         "Host other\n PKCS11Provider /x"};
  for (const auto* line : lines) EXPECT_EQ(good(line).needs_openssh, "") << line;
}

// As Red Hat's /etc/ssh/ssh_config.d/50-redhat.conf and the file of its crypto policy that it includes.
TEST_F(SshConfig, TakesAPolicyForAllHostsAtTheEnd) {
  write("policy",
        "Ciphers aes256-gcm@openssh.com,aes256-ctr\nMACs hmac-sha2-256\nGSSAPIKeyExchange no\n"
        "KexAlgorithms curve25519-sha256\n"
        "PubkeyAcceptedAlgorithms ssh-ed25519,ssh-ed25519-cert-v01@openssh.com,sk-ssh-ed25519@openssh.com\n"
        "CASignatureAlgorithms ssh-ed25519\nRequiredRSASize 2048\n");
  const auto target =
      good("Match final all\n Include " + folder_ +
           "/policy\n GSSAPIAuthentication yes\n ForwardX11Trusted yes\nHost box\n Ciphers aes128-ctr\n");
  EXPECT_EQ(target.needs_openssh, "");
  EXPECT_FALSE(target.is_partial);
  EXPECT_EQ(target.ciphers, "aes128-ctr") << "the user's own";
  EXPECT_EQ(target.macs, "hmac-sha2-256");
  EXPECT_EQ(target.key_algorithms, "ssh-ed25519,ssh-ed25519-cert-v01@openssh.com,sk-ssh-ed25519@openssh.com");
  EXPECT_EQ(target.min_rsa_bits, 2048);
  EXPECT_TRUE(target.tries_gssapi);
  EXPECT_EQ(good("PubkeyAcceptedKeyTypes ssh-ed25519\n").key_algorithms, "ssh-ed25519");
  EXPECT_EQ(good("RSAMinSize 3072\n").min_rsa_bits, 3072);
  EXPECT_EQ(good("RequiredRSASize 7\n").min_rsa_bits, 1024);
  EXPECT_FALSE(resolve("RequiredRSASize many\n"));
}

TEST_F(SshConfig, LooksForCertificatesAndSecurityKeysBesideIdentities) {
  write("k", "");
  EXPECT_EQ(good("IdentityFile " + folder_ + "/k").needs_openssh, "");
  write("k-cert.pub", "x");
  EXPECT_EQ(good("IdentityFile " + folder_ + "/k").needs_openssh, "certificate " + folder_ + "/k-cert.pub");
  write("s", "");
  write("s.pub", "sk-ssh-ed25519@openssh.com AAAA x\n");
  EXPECT_EQ(good("IdentityFile " + folder_ + "/s").needs_openssh, "security key " + folder_ + "/s");
}

TEST_F(SshConfig, NamesTheLineOfWhatIsWrong) {
  struct Bad {
    const char* config;
    const char* line;
    const char* words;
  };
  const Bad bad[] = {{"Host box\n Port many\n", ":2", "not a port: 'many'"},
                     {"Port 0\n", ":1", "not a port"},
                     {"Port 70000\n", ":1", "not a port"},
                     {"\n\nPort\n", ":3", "missing argument of port"},
                     {"User \"bob\n", ":1", "quote"},
                     {"IdentitiesOnly perhaps\n", ":1", "yes or no"},
                     {"StrictHostKeyChecking maybe\n", ":1", "StrictHostKeyChecking"},
                     {"ConnectTimeout soon\n", ":1", "not a time"},
                     {"AddressFamily ipx\n", ":1", "AddressFamily"},
                     {"Match weather rain\n", ":1", "unsupported Match criterion 'weather'"},
                     {"Match host\n", ":1", "missing argument"},
                     {"IdentityFile ${DRUN_NO_SUCH}/k\n", ":1", "DRUN_NO_SUCH"}};
  for (const auto& b : bad) {
    const auto target = resolve(b.config);
    ASSERT_FALSE(target) << b.config;
    EXPECT_EQ(target.error().code, Errc::kUsage) << b.config;
    EXPECT_EQ(target.error().subject, folder_ + "/config" + b.line) << b.config;
    EXPECT_NE(target.error().cause.find(b.words), std::string::npos) << target.error().cause;
  }
}

TEST(SshTokens, TheTildeIsAHome) {
  EXPECT_EQ(expand_tilde("~/k", "/home/me"), "/home/me/k");
  EXPECT_EQ(expand_tilde("~root/k", "/home/me"), ::getpwuid(0)->pw_dir + std::string("/k"));
  EXPECT_EQ(expand_tilde("a~/k", "/home/me"), "a~/k");
  EXPECT_EQ(expand_tilde("~/k", ""), "~/k") << "not /k";
}

TEST_F(SshConfig, IncludesCountFromTheFolderOrAHome) {
  write("part", "");
  EXPECT_EQ(included_files("pa*", "/home/me", folder_), std::vector<std::string>{folder_ + "/part"});
  EXPECT_EQ(included_files("~/part", folder_, "/no"), std::vector<std::string>{folder_ + "/part"});
  EXPECT_EQ(included_files("~root", "/home/me", "/no"), std::vector<std::string>{::getpwuid(0)->pw_dir});
  std::filesystem::create_directory(folder_ + "/~no such user");
  EXPECT_TRUE(included_files("~no such user", "/home/me", folder_).empty());
}

TEST_F(SshConfig, StopsAtAnIncludeOfItself) {
  const auto target = resolve("Include " + folder_ + "/config\n");
  ASSERT_FALSE(target);
  EXPECT_NE(target.error().cause.find("Include"), std::string::npos);
}

TEST_F(SshConfig, ChecksTheIdentityFileOfTheOption) {
  const auto missing = check_identity_file(folder_ + "/no-key");
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, Errc::kUsage);
  EXPECT_EQ(missing.error().message(), "-i " + folder_ + "/no-key: can't read the key: no such file or directory");
  EXPECT_FALSE(check_identity_file(folder_));
  write("key", "x");
  EXPECT_TRUE(check_identity_file(folder_ + "/key"));
}

TEST_F(SshConfig, TakesALaterConnectTimeoutThanNone) {
  EXPECT_EQ(good("ConnectTimeout none\nConnectTimeout 17\nConnectTimeout 5\n").connect_timeout.count(), 17);
  EXPECT_EQ(good("ConnectTimeout none\n").connect_timeout.count(), 0);
}

TEST_F(SshConfig, TakesAProxyCommandAfterProxyJumpNone) {
  EXPECT_EQ(good("ProxyJump none\nProxyCommand nc h p\n").proxy_command, "nc h p");
  EXPECT_EQ(good("ProxyJump None\nProxyJump j\n").proxy_jump, "none");
  EXPECT_EQ(good("ProxyJump j\nProxyCommand nc h p\n").proxy_command, "");
  EXPECT_EQ(good("ProxyCommand none\nProxyJump j\n").proxy_jump, "");
}

TEST_F(SshConfig, SkipsAnEqualsSignBeforeAKeyword) {
  EXPECT_EQ(good(" = HostName real.example.org\n").host_name, "real.example.org");
  EXPECT_EQ(good("=\nPort 7\n").port, 7);
}

TEST(SshTime, ReadsTheFormatsOfSsh) {
  EXPECT_EQ(parse_ssh_time("90"), 90);
  EXPECT_EQ(parse_ssh_time("1m30s"), 90);
  EXPECT_EQ(parse_ssh_time("2h"), 7200);
  EXPECT_EQ(parse_ssh_time("1w"), 604800);
  for (const char* bad : {"", "x", "5x", "-1", "m", "99999999999"}) EXPECT_FALSE(parse_ssh_time(bad)) << bad;
}

TEST(SshMatch, LeavesOnlyWhatDecidesToOpenssh) {
  MatchSubject subject;
  subject.host = subject.original_host = "a";
  subject.user = subject.local_user = "u";
  EXPECT_TRUE(evaluate_match({"host", "a", "user", "u"}, subject)->matches);
  EXPECT_FALSE(evaluate_match({"host", "a", "user", "v"}, subject)->matches);
  EXPECT_EQ(evaluate_match({"host", "a", "exec", "x"}, subject)->needs_openssh, "exec");
  EXPECT_EQ(evaluate_match({"exec", "x", "host", "b"}, subject)->needs_openssh, "");
  EXPECT_TRUE(evaluate_match({"host=a"}, subject)->matches);
  EXPECT_FALSE(evaluate_match({"all", "host", "a"}, subject));
}

}  // namespace
}  // namespace drun::transport
