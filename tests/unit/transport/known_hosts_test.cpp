#include "transport/known_hosts.h"

#include <gtest/gtest.h>

#include "base/text.h"
#include "tests/known_keys.h"
#include "transport/openssh_args.h"
#include "transport/sha1.h"
#include "transport/text_tail.h"

namespace drun::transport {
namespace {

using testing::find_known_keys;

std::vector<int> lines(const std::string& text, const std::string& name, const std::string& plain = "") {
  std::vector<int> out;
  for (const auto& key : find_known_keys(text, "f", name, plain)) out.push_back(key.line);
  return out;
}

TEST(KnownHosts, NamesCarryThePortUnlessItIs22) {
  EXPECT_EQ(known_hosts_name("Host1", 22, ""), "host1");
  EXPECT_EQ(known_hosts_name("host1", 12345, ""), "[host1]:12345");
  EXPECT_EQ(known_hosts_name("fd00::2", 12345, ""), "[fd00::2]:12345");
  EXPECT_EQ(known_hosts_name("FD00:0:0:0::02", 22, ""), "fd00::2") << "an address has one name";
  EXPECT_EQ(known_hosts_name("fd00:0::2", 12345, ""), "[fd00::2]:12345");
  EXPECT_EQ(known_hosts_name("fd00:0::2", 22, "fd00:0::2"), "fd00:0::2") << "an alias is no address";
  EXPECT_EQ(known_hosts_name("host1", 12345, "The-Alias"), "the-alias");
}

TEST(KnownHosts, FindsPlainListedAndPatternNames) {
  const std::string text =
      "# comment\n"
      "\n"
      "a,b ssh-ed25519 K1 c\n"
      "*.example.org,!x.example.org ssh-ed25519 K2\n"
      "[a]:12345\tssh-rsa\tK3\n"
      "  b   ssh-rsa   K4\r\n"
      "broken\n"
      "a ssh-rsa\n"
      "A ssh-dss K5\n";
  EXPECT_EQ(lines(text, "a"), (std::vector<int>{3, 9}));
  EXPECT_EQ(lines(text, "b"), (std::vector<int>{3, 6}));
  EXPECT_EQ(lines(text, "y.example.org"), (std::vector<int>{4}));
  EXPECT_EQ(lines(text, "x.example.org"), (std::vector<int>{}));
  EXPECT_EQ(lines(text, "[a]:12345"), (std::vector<int>{5}));
  const auto keys = find_known_keys(text, "f", "[a]:12345", "a");
  ASSERT_EQ(keys.size(), 3u);
  EXPECT_TRUE(keys[0].plain_name);
  EXPECT_FALSE(keys[1].plain_name);
  EXPECT_EQ(keys[1].key, HostKey("ssh-rsa", "K3"));
  EXPECT_EQ(find_known_keys(text, "f", "b", "").at(1).key, HostKey("ssh-rsa", "K4"));
}

TEST(KnownHosts, TellsMarkers) {
  const auto keys = find_known_keys("@revoked a t K1\n@cert-authority * t K2\n@future a t K3\n", "f", "a", "");
  ASSERT_EQ(keys.size(), 2u);
  EXPECT_TRUE(keys[0].revoked);
  EXPECT_TRUE(keys[1].authority);
}

TEST(KnownHosts, KeysOfProtocol1AreNoKeys) {
  KnownHostLines lines("f");
  lines.append("host1 1024 35 12345678901\nhost1 ssh-ed25519 KEY\n");
  const auto found = lines.find("host1", "");
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].line, 2);
}

TEST(KnownHosts, FindsHashedNames) {
  const std::string salt(20, '\x17');
  const std::string text =
      hashed_name(salt, "[host1]:12345") + " t K\n" + hashed_name(salt, "host2") + " t K\n|1|x t K\n";
  EXPECT_EQ(lines(text, "[host1]:12345"), (std::vector<int>{1}));
  EXPECT_EQ(lines(text, "[host2]:12345", "host2"), (std::vector<int>{2}));
  EXPECT_EQ(lines(text, "host3"), (std::vector<int>{}));
}

TEST(KnownHosts, LinesThatAreAddedLaterAreFoundUnderTheirNumbers) {
  const std::string salt(20, '\x17');
  KnownHostLines lines("f");
  lines.append("a t K1\n\nb t K2\n");
  EXPECT_EQ(lines.find("a", "").size(), 1u);
  lines.append("*,!b t K3\na,c t K4\n" + hashed_name(salt, "a") + " t K5\n");
  std::vector<int> numbers;
  for (const auto& key : lines.find("a", "")) numbers.push_back(key.line);
  EXPECT_EQ(numbers, (std::vector<int>{1, 4, 5, 6}));
  EXPECT_EQ(lines.find("a", "").size(), 4u);
  EXPECT_EQ(lines.find("b", "").size(), 1u);
  EXPECT_EQ(lines.n_lines(), 6);
}

TEST(Sha1, GivesThePublishedValues) {
  EXPECT_EQ(hex(sha1("")), "da39a3ee5e6b4b0d3255bfef95601890afd80709");
  EXPECT_EQ(hex(sha1("abc")), "a9993e364706816aba3e25717850c26c9cd0d89d");
  EXPECT_EQ(hex(sha1("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq")),
            "84983e441c3bd26ebaae4aa1f95129e5e54670f1");
  EXPECT_EQ(hex(sha1(std::string(1000000, 'a'))), "34aa973cd4c4daa4f61eeb2bdbad27316534016f");
  // RFC 2202
  EXPECT_EQ(hex(hmac_sha1(std::string(20, '\x0b'), "Hi There")), "b617318655057264e28bc0b6fb378c8ef146be00");
  EXPECT_EQ(hex(hmac_sha1(std::string(80, '\xaa'), "Test Using Larger Than Block-Size Key - Hash Key First")),
            "aa4ae5e15272d00e95705637ce8a3b55ed402112");
}

TEST(Base64, GoesBothWays) {
  for (const char* text : {"", "f", "fo", "foo", "foob", "fooba", "foobar"}) EXPECT_EQ(unbase64(base64(text)), text);
  EXPECT_EQ(base64("fo"), "Zm8=");
  EXPECT_EQ(base64("foobar"), "Zm9vYmFy");
  EXPECT_EQ(unbase64("Zm9!"), "");
}

TEST(TextTail, KeepsTheEnd) {
  TextTail tail;
  for (int i = 0; i < 10000; ++i) tail.append("ab");
  tail.append("end");
  EXPECT_EQ(tail.str().size(), TextTail::kLimit);
  EXPECT_TRUE(tail.str().ends_with("abend"));
}

TEST(OpensshArgs, SayOnlyWhatOptionsAndHostItemSaid) {
  SshTarget target;
  target.alias = "host1";
  target.user = "from-config";
  target.port = 12345;
  const auto words = [&target] { return " " + join(openssh_argv(target, "", "run it", 9), " ") + " "; };
  EXPECT_EQ(words().find(" -p "), std::string::npos);
  EXPECT_EQ(words().find(" -l "), std::string::npos);
  EXPECT_EQ(words().find(" -F "), std::string::npos);
  EXPECT_NE(words().find(" -oBatchMode=yes "), std::string::npos);
  EXPECT_NE(words().find(" -oLogLevel=INFO "), std::string::npos) << "errors are judged by its words";
  EXPECT_NE(words().find(" -oConnectTimeout=9 "), std::string::npos);
  EXPECT_NE(words().find(" -oStrictHostKeyChecking=accept-new "), std::string::npos);
  EXPECT_TRUE(words().ends_with(" -- host1 run it "));
  target.port_by_option = target.user_by_item = target.identity_by_option = true;
  target.identity_files = {"/k"};
  target.config_file = "/c";
  target.connect_timeout = std::chrono::seconds(3);
  EXPECT_NE(words().find(" -F /c -p 12345 -i /k -l from-config -- host1 "), std::string::npos) << words();
  EXPECT_EQ(words().find("ConnectTimeout"), std::string::npos);
}

TEST(OpensshArgs, AreTypedInHintsAsDrunLogsIn) {
  SshTarget target;
  target.alias = "host1";
  target.user = "from-config";
  target.port = 12345;
  EXPECT_EQ(typed_ssh(target), "ssh host1") << "ssh reads its config itself";
  target.port_by_option = target.user_by_item = target.identity_by_option = true;
  target.identity_files = {"/my key"};
  target.config_file = "/c";
  EXPECT_EQ(typed_ssh(target), "ssh -F /c -p 12345 -i '/my key' from-config@host1");
  target.user = "CORP\\me";
  EXPECT_EQ(typed_ssh(target, "-v"), "ssh -v -F /c -p 12345 -i '/my key' 'CORP\\me@host1'");
}

TEST(OpensshArgs, NeverLetSshAcceptAChangedKey) {
  SshTarget target;
  target.alias = "host1";
  for (const bool is_partial : {false, true}) {
    target.is_partial = is_partial;
    for (const auto policy : {HostKeyPolicy::kAcceptNew, HostKeyPolicy::kOff, HostKeyPolicy::kStrict}) {
      target.host_keys = policy;
      const auto words = openssh_argv(target, "", "run it", 9);
      const bool is_asked = is_partial && policy != HostKeyPolicy::kStrict;
      EXPECT_EQ(words.at(0), is_asked ? "/bin/sh" : "ssh");
      const std::string option =
          std::string("-oStrictHostKeyChecking=") + (policy == HostKeyPolicy::kStrict ? "yes" : "accept-new");
      EXPECT_EQ(std::count(words.begin(), words.end(), option), is_asked ? 0 : 1) << option;
    }
  }
}

}  // namespace
}  // namespace drun::transport
