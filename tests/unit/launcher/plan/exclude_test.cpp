#include "launcher/plan/exclude.h"

#include <gtest/gtest.h>

#include "base/text.h"
#include "launcher/plan/hostlist.h"
#include "tests/unit/launcher/plan/host_text.h"

namespace drun::launcher {
namespace {

std::string error_text(const Error& error) { return error.message() + " | " + error.hint; }

std::string parsed(const std::string& item) {
  const auto out = parse_excluded(item);
  return out ? hosts_text(*out) : error_text(out.error());
}

// The hosts that stay of `list` without `items`, which blanks separate.
std::string left_of(const std::string& list, const std::string& items, const std::string& job = "") {
  auto hosts = parse_hostlist(list);
  if (!hosts) return error_text(hosts.error());
  for (auto& host : *hosts) host.job = job;
  std::vector<Host> excluded;
  for (const auto item : split(items, ' ')) {
    auto some = parse_excluded(item);
    if (!some) return error_text(some.error());
    excluded.insert(excluded.end(), some->begin(), some->end());
  }
  const auto out = leave_out(std::move(*hosts), excluded);
  return out ? hosts_text(*out) : error_text(out.error());
}

constexpr const char* kHosts = "a:2,me@b:1,node[1-4]:8,[fd00::2]:2,you@b:3";
constexpr const char* kAll = "a, me@b, node1, node2, node3, node4, [fd00::2], you@b";

TEST(Exclude, LeavesOutHostsByTheirNames) {
  EXPECT_EQ(left_of(kHosts, "node[2-4] A fd00::2"), "me@b:1 node1:8 you@b:3");
  EXPECT_EQ(left_of(kHosts, "b node[1-4] b"), "a:2 fd00::2:2");
  EXPECT_EQ(left_of(kHosts, "you@b node[1-4] [fd00::2]"), "a:2 me@b:1");
  EXPECT_EQ(left_of(kHosts, "a b node[1-4] fd00::2"), std::string("--exclude: no host is left of ") + kAll + " | ");
}

TEST(Exclude, AHostThatIsNotThereIsAnError) {
  const auto error = [](const std::string& name, const std::string& hint) {
    return "--exclude: " + name + " is not among the hosts: " + kAll + " | " + hint;
  };
  EXPECT_EQ(left_of(kHosts, "node5"), error("node5", "")) << "node1 would be another machine";
  EXPECT_EQ(left_of(kHosts, "node01"), error("node01", "--exclude node1"));
  EXPECT_EQ(left_of(kHosts, "nodde3"), error("nodde3", "--exclude node3"));
  EXPECT_EQ(left_of(kHosts, "c.example.com"), error("c.example.com", ""));
  EXPECT_EQ(left_of(kHosts, "c"), error("c", ""));
  EXPECT_EQ(left_of(kHosts, "root@b"), error("root@b", "--exclude me@b, or --exclude you@b"));
  EXPECT_EQ(left_of(kHosts, "node1@node2"), error("node1@node2", "commas between hosts: node1,node2"));
  EXPECT_EQ(left_of("n[1-12]", "x"),
            "--exclude: x is not among the hosts: n1, n2, n3, n4, n5, n6, n7, n8 and 4 others | ");
}

// Schedulers write names with or without the domain.
TEST(Exclude, ShortNamesMeanHostsOfAJobInTheirDomain) {
  EXPECT_EQ(left_of("n1.x.org:1,n2.x.org:1", "n2", "PBS job 4"), "n1.x.org:1");
  EXPECT_EQ(left_of("n1:1,n2:1", "n2.x.org", "PBS job 4"), "n1:1");
  EXPECT_EQ(left_of("n1.x.org:1,n1.y.org:1", "n1", "PBS job 4").substr(0, 38),
            "--exclude: n1 is not among the hosts: ");
  const auto refused = [](const std::string& list, const std::string& item) {
    const std::string out = left_of(list, item, "PBS job 4");
    return out.find(" is not among the hosts: ") == std::string::npos ? out : out.substr(out.find(" | "));
  };
  EXPECT_EQ(refused("n1.x.org:1,n1.y.org:1", "n1"), " | --exclude n1.x.org, or --exclude n1.y.org");
  EXPECT_EQ(refused("n1.x.org:1,n2.x.org:1", "n1.y.org"), " | --exclude n1.x.org") << "another domain is another host";
  EXPECT_EQ(refused("10.0.0.1:1,n2:1", "10.0.0.9"), " | ");
  EXPECT_EQ(left_of("n1.x.org:1,n2:1", "n1"),
            "--exclude: n1 is not among the hosts: n1.x.org, n2 | --exclude n1.x.org");
}

TEST(ExcludedItem, IsAWholeHost) {
  EXPECT_EQ(parsed("n[03-05]"), "n03~1 n04~1 n05~1");
  EXPECT_EQ(parsed(" root@b "), "root@b~1");
  EXPECT_EQ(parsed("fd00::2"), "fd00::2~1");
  const auto error = [](const std::string& item, const std::string& names) {
    return "--exclude: '" + item + "': whole hosts are left out, not slots or GPUs | --exclude " + names +
           "; or -H with the slots or GPUs that stay";
  };
  EXPECT_EQ(parsed("a:0"), error("a:0", "a")) << "DeepSpeed's GPU 0";
  EXPECT_EQ(parsed("root@a:2"), error("root@a:2", "root@a"));
  EXPECT_EQ(parsed("[fd00::2]:2"), error("[fd00::2]:2", "[fd00::2]"));
  EXPECT_EQ(parsed("a:gpus=0"), error("a:gpus=0", "a"));
  EXPECT_EQ(parsed("w1:0@w2:0"), error("w1:0@w2:0", "w1,w2"));
  EXPECT_EQ(parsed("n[1-2]:4"), error("n[1-2]:4", "n[1-2]"));
  EXPECT_EQ(parsed(""), "--exclude: an item is empty | --exclude b,n[03-05]");
  EXPECT_EQ(parsed("a/b"),
            "--exclude: 'a/b', column 2: '/' in a host name | the host's name alone, the ssh port by -p");
}

}  // namespace
}  // namespace drun::launcher
