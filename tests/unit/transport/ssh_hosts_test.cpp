#include "transport/ssh_hosts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/temp_folder.h"

namespace drun::transport {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Names = std::vector<std::string>;

TEST(SshHosts, ConfigNamesWithoutPatternsIncludesFollowed) {
  drun::testing::TempFolder folder;
  folder.write("config",
               "Include more/*.conf\nHost node1 \"node 2\" *.lab !bad gpu?\n  HostName 10.0.0.1\n# Host not\n"
               "Host=node3\nInclude ~/at-home\nHost \"open quote\nhost node4\n");
  folder.write("more/a.conf", "Host inner\nInclude config\n");  // includes itself by way of config
  folder.write("at-home", "Host home\n");
  EXPECT_THAT(config_hosts(folder.path("config"), folder.path(), folder.path()),
              ElementsAre("inner", "node1", "node 2", "node3", "home", "node4"));
}

TEST(SshHosts, AMissingConfigHasNoHosts) { EXPECT_THAT(config_hosts("/nonexistent", "/", "/"), IsEmpty()); }

TEST(SshHosts, KnownHostsNamesThatAreNeitherHashedNorPatterns) {
  EXPECT_THAT(known_hosts_hosts("# comment\n|1|c2FsdA==|aGFzaA== ssh-ed25519 AAAA\nnode1,10.0.0.1 ssh-rsa AAAA\n"
                                "[node2]:2222 ssh-rsa AAAA\n@revoked node3 ssh-rsa AAAA\n*.lab,!x ssh-rsa AAAA\n"
                                "fd00::2 ssh-rsa AAAA\r\n[ ssh-rsa AAAA"),
              ElementsAre("node1", "10.0.0.1", "node2", "fd00::2"));
}

TEST(SshHosts, EachNameOnceFromTheConfigOfF) {
  drun::testing::TempFolder folder;
  folder.write("config", "Host one two\nHost two\n");
  const Names names = ssh_hosts(folder.path("config"));
  EXPECT_EQ(std::count(names.begin(), names.end(), "two"), 1);
  const Names none = ssh_hosts("none");
  EXPECT_EQ(std::count(none.begin(), none.end(), "two"), 0);
}

}  // namespace
}  // namespace drun::transport
