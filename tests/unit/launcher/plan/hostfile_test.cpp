#include "launcher/plan/hostfile.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>

#include "launcher/plan/hostlist.h"
#include "tests/unit/launcher/plan/host_text.h"

namespace drun::launcher {
namespace {

struct Good {
  const char* text;
  const char* hosts;
};

TEST(Hostfile, ReadsOpenMpiMpichAndDeepSpeed) {
  const Good table[] = {
      {"localhost", "localhost~1"},
      {"localhost\n", "localhost~1"},
      {"localhost:2\n", "localhost:2"},
      {"a slots=2\n", "a:2"},
      {"a slots = 2\n", "a:2"},
      {"a slots= 2\n", "a:2"},
      {"a slots =2\n", "a:2"},
      {"a\tslots=2\t\n", "a:2"},
      {"a SLOTS=2\n", "a:2"},
      {"a cpu=2\nb count=3\n", "a:2 b:3"},
      {"a slots=2 max_slots=4\n", "a:2/4"},
      {"a slots=2 max-slots=4\n", "a:2/4"},
      {"a slots=2 slots-max=4\n", "a:2/4"},
      {"a max_slots=4 slots=2\n", "a:2/4"},
      {"a max_slots=4\n", "a~1/4"},
      {"a:2 max_slots=2\n", "a:2/2"},
      {"a slots=2 port=2222\n", "a%2222:2"},
      {"root@a slots=2\n", "root@a:2"},
      {"a user=root slots=2\n", "root@a:2"},
      {"a username=root\n", "root@a~1"},
      {"a user = root port = 22\n", "root@a%22~1"},
      {"# head\n\n  \t\na slots=2 # the fast one\n#b\nc:1#x\n", "a:2 c:1"},
      {"a slots=2 // c\n// d\n/* e */ b /* f */ slots=3 /* g */\n# /* h\nc\n", "a:2 b:3 c~1"},
      {"a slots=2\r\nb slots=3\r\n\r\n", "a:2 b:3"},
      {"a\r\n", "a~1"},
      {"   a   slots=2   ", "a:2"},
      {"node[01-03] slots=8", "node01:8 node02:8 node03:8"},
      {"node[1,3]:2", "node1:2 node3:2"},
      {"u@node[1-2] port=2222 max_slots=9\n", "u@node1%2222~1/9 u@node2%2222~1/9"},
      {"fd00::2 slots=2\n", "fd00::2:2"},
      {"[fd00::2]:2\n", "fd00::2:2"},
      {"10.0.0.1 slots=2\n10.0.0.2:2\n", "10.0.0.1:2 10.0.0.2:2"},
      {"\xef\xbb\xbfhost slots=2\n", "host:2"},
      {"worker-1 slots=4\nworker-2 slots=4\n", "worker-1:4 worker-2:4"},
  };
  for (const auto& t : table) {
    const auto hosts = parse_hostfile(t.text, "hosts.txt");
    ASSERT_TRUE(hosts) << t.text << ": " << hosts.error().message();
    EXPECT_EQ(hosts_text(*hosts), t.hosts) << t.text;
  }
}

TEST(Hostfile, AddsTheSlotsOfAHostThatComesAgain) {
  const auto hosts = parse_hostfile("a slots=2\nb slots=1\na slots=3\na\n", "f");
  ASSERT_TRUE(hosts);
  EXPECT_EQ(hosts_text(add_slots(*hosts)), "a:6 b:1");
}

struct Bad {
  const char* text;
  const char* message;
  const char* hint;
};

TEST(Hostfile, NamesTheGpusOfWorkers) {
  const auto hosts = parse_hostfile("a gpus=0,2\nb:1 gpus=4,5\nc slots=2 gpus=GPU-1,MIG-2\n", "hosts");
  ASSERT_TRUE(hosts) << hosts.error().message();
  EXPECT_EQ((*hosts)[0].slots, 2);
  EXPECT_EQ((*hosts)[0].gpus, (std::vector<std::string>{"0", "2"}));
  EXPECT_EQ((*hosts)[1].slots, 1);
  EXPECT_EQ((*hosts)[2].gpus, (std::vector<std::string>{"GPU-1", "MIG-2"}));
  const auto fewer = parse_hostfile("a slots=3 gpus=0,2\n", "hosts");
  ASSERT_FALSE(fewer);
  EXPECT_NE(fewer.error().message().find("3 slots for 2 GPUs"), std::string::npos) << fewer.error().message();
}

TEST(Hostfile, RefusesWithFileLineAndColumn) {
  const Bad table[] = {
      {"", "hosts.txt: no host in this hostfile", "localhost slots=2"},
      {"\n# nothing\n  \n", "hosts.txt: no host in this hostfile", ""},
      {"a slots=0\n", "hosts.txt:1:9: zero slots", ""},
      {"a\nb slots=-2\n", "hosts.txt:2:9: a negative number of slots", ""},
      {"a slots=x\n", "hosts.txt:1:9: 'x' is not a slot count", ""},
      {"a slots=\n", "hosts.txt:1:8: 'slots' has no value", "slots=2"},
      {"a slots= # 2\n", "hosts.txt:1:8: 'slots' has no value", ""},
      {"a slots\n", "hosts.txt:1:3: 'slots' is neither KEY=VALUE nor a comment", ""},
      {"a slots 2\n", "hosts.txt:1:3: 'slots' is neither KEY=VALUE nor a comment", ""},
      {"a slots=12345\n", "hosts.txt:1:9: 12345 slots on one host (at most 1024)", "-p 12345"},
      {"\n\na  b\n", "hosts.txt:3:4: 'b' is neither KEY=VALUE nor a comment", "a line for each host"},
      {"a 2\n", "hosts.txt:1:3: '2' is neither KEY=VALUE nor a comment", "a slots=2"},
      {"x\ny\nz\na b slot=2\n", "hosts.txt:4:3: 'b' is neither", ""},
      {"a slot=2\n", "hosts.txt:1:3: unknown key 'slot'", "slots="},
      {"a slots=2 prot=22\n", "hosts.txt:1:11: unknown key 'prot'", "port="},
      {"a gpus_per_task_all=2\n", "hosts.txt:1:3: unknown key 'gpus_per_task_all'",
       "slots=, max_slots=, port=, user= or gpus="},
      {"a =2\n", "hosts.txt:1:3: '=' without a key", ""},
      {"a:2 binding=user:0,1\n", "hosts.txt:1:5: drun binds on every host alike", "--bind-to core"},
      {"a /* never closed\n", "hosts.txt:1:3: '/*' is neither", ""},
      {"a slots=2 slots=3\n", "hosts.txt:1:11: 'slots' is given twice on this line", ""},
      {"a slots=2 cpu=3\n", "hosts.txt:1:11: 'cpu' is given twice on this line", ""},
      {"a:2 slots=3\n", "hosts.txt:1:5: slots are given twice", ""},
      {"r@a user=s\n", "hosts.txt:1:5: the user is given twice", ""},
      {"a slots=4 max_slots=2\n", "hosts.txt:1:11: 4 slots, but at most 2", "slots=2"},
      {"a max_slots=2 slots=4\n", "hosts.txt:1:15: 4 slots, but at most 2", ""},
      {"a port=0\n", "hosts.txt:1:8: '0' is not a port", "1 to 65535"},
      {"a port=65536\n", "hosts.txt:1:8: '65536' is not a port", ""},
      {"a port=ssh\n", "hosts.txt:1:8: 'ssh' is not a port", ""},
      {"a user=-l\n", "hosts.txt:1:8: a user name can't begin with '-'", ""},
      {"a user=x;y\n", "hosts.txt:1:9: the character ';' in a user name", ""},
      {"a,b slots=2\n", "hosts.txt:1:2: ',' between hosts", "a line for each host"},
      {"  a:0\n", "hosts.txt:1:5: zero slots", ""},
      {"a\nnode[01- slots=2\n", "hosts.txt:2:5: the '[' is never closed", ""},
      {"-oProxyCommand=x\n", "hosts.txt:1:15: '=' in a host name", ""},
      {"slots=2\n", "hosts.txt:1:6: '=' in a host name", ""},
      {"rank 0=a slot=1\n", "hosts.txt:1:6: unknown key '0'", ""},
      {"a[1-40000]\nb[1-40000]\n", "hosts.txt:2:1: more than 65536 hosts in all", ""},
      {"a\r\nb c\r\n", "hosts.txt:2:3: 'c' is neither", ""},
  };
  for (const auto& t : table) {
    const auto hosts = parse_hostfile(t.text, "hosts.txt");
    ASSERT_FALSE(hosts) << t.text << " gave " << hosts_text(*hosts);
    const Error& e = hosts.error();
    EXPECT_EQ(e.code, Errc::kUsage) << t.text;
    EXPECT_EQ(e.message().substr(0, std::string(t.message).size()), t.message) << t.text;
    EXPECT_NE(e.hint.find(t.hint), std::string::npos) << t.text << ": hint is " << e.hint;
  }
}

TEST(Hostfile, RefusesNulBytes) {
  const auto hosts = parse_hostfile(std::string("a\0b slots=2\n", 12), "hosts.txt");
  ASSERT_FALSE(hosts);
  EXPECT_EQ(hosts.error().message(), "hosts.txt:1:2: the byte 0x00 in a host name");
}

TEST(Hostfile, RemembersTheLine) {
  const auto hosts = parse_hostfile("\n  a\nb\n", "hosts.txt");
  ASSERT_TRUE(hosts);
  EXPECT_EQ((*hosts)[0].where, "hosts.txt:2:3");
  EXPECT_EQ((*hosts)[1].where, "hosts.txt:3:1");
}

TEST(Hostfile, TakesTenThousandLines) {
  std::string text;
  for (int i = 0; i < 10000; ++i) text += "host" + std::to_string(i) + " slots=8 # rack\n";
  const auto hosts = parse_hostfile(text, "hosts.txt");
  ASSERT_TRUE(hosts);
  ASSERT_EQ(hosts->size(), 10000u);
  EXPECT_EQ(hosts->back().where, "hosts.txt:10000:1");
}

class HostfileOnDisk : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (std::filesystem::temp_directory_path() / "drun-hostfile-XXXXXX").string();
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    directory_ = pattern;
  }
  void TearDown() override {
    std::error_code ec;
    std::filesystem::remove_all(directory_, ec);
  }
  std::filesystem::path directory_;
};

TEST_F(HostfileOnDisk, IsReadAndParsed) {
  const std::string file = directory_ / "my hosts";
  std::ofstream(file) << "a slots=2\nb slots=oops\n";
  const auto bad = read_hostfile(file);
  ASSERT_FALSE(bad);
  EXPECT_EQ(bad.error().subject, file + ":2:9");
  std::ofstream(file) << "a slots=2\n";
  const auto good = read_hostfile(file);
  ASSERT_TRUE(good) << good.error().message();
  EXPECT_EQ(hosts_text(*good), "a:2");
}

TEST_F(HostfileOnDisk, ThatIsMissingOrADirectoryIsAUsageError) {
  const auto missing = read_hostfile(directory_ / "nowhere");
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, Errc::kUsage);
  EXPECT_EQ(missing.error().message(),
            (directory_ / "nowhere").string() + ": the hostfile can't be read: no such file or directory");
  const auto directory = read_hostfile(directory_);
  ASSERT_FALSE(directory);
  EXPECT_EQ(directory.error().message(), directory_.string() + ": the hostfile can't be read: is a directory");
}

}  // namespace
}  // namespace drun::launcher
