#include "agent/process_list.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "base/fd.h"

namespace drun::agent {
namespace {

using namespace std::string_literals;

TEST(ProcStatus, GivesTheRealUser) {
  EXPECT_EQ(parse_real_uid("Name:\tx\nUid:\t1000\t0\t0\t0\nGid:\t5\t5\t5\t5\n"), 1000u);
  EXPECT_EQ(parse_real_uid("Name:\tUid:\t7\n"), std::nullopt);
  EXPECT_EQ(parse_real_uid("Uid:\t\n"), std::nullopt);
  EXPECT_EQ(parse_real_uid(""), std::nullopt);
}

TEST(Environment, TellsJobAndRank) {
  const auto mark = parse_environment("PATH=/bin\0DRUN_RANK=12\0DRUN_JOB_ID=0123456789abcdef\0A=B\0"s);
  EXPECT_EQ(mark.job_id, "0123456789abcdef");
  EXPECT_EQ(mark.rank, 12);
}

TEST(Environment, TellsTheSocketOfTheAgent) {
  EXPECT_EQ(parse_environment("DRUN_AGENT=/tmp/drun-ab/agent\0DRUN_JOB_ID=a\0"s).agent_socket, "/tmp/drun-ab/agent");
  EXPECT_EQ(parse_environment("DRUN_AGENT=/tmp/drun-ab/agent\0"s).agent_socket, "");
}

TEST(Environment, OnlyAWholeNameIsAMark) {
  for (const std::string& environment :
       {""s, "XDRUN_JOB_ID=abc\0"s, "DRUN_JOB_IDS=abc\0"s, "A=DRUN_JOB_ID=abc\0"s, "DRUN_JOB_ID\0"s, "DRUN_JOB_ID=\0"s,
        "DRUN_JOB_ID=a b\0"s, "DRUN_JOB_ID=a/b\0"s, "DRUN_JOB_ID=\x1b[2J\0"s, "DRUN_JOB_ID=" + std::string(65, 'a')}) {
    EXPECT_EQ(parse_environment(environment).job_id, "") << environment;
    EXPECT_EQ(parse_environment(environment + "\0DRUN_RANK=1"s).rank, -1) << environment;
  }
}

TEST(Environment, ARankThatIsNoneIsUnknown) {
  EXPECT_EQ(parse_environment("DRUN_JOB_ID=a\0DRUN_RANK=-1\0"s).rank, -1);
  EXPECT_EQ(parse_environment("DRUN_JOB_ID=a\0DRUN_RANK=99999999999\0"s).rank, -1);
}

TEST(Command, IsOneLineThatATerminalCanShow) {
  EXPECT_EQ(printable_command("python3\0train.py\0--lr\0"
                              "1\0"s,
                              "python3", 100),
            "python3 train.py --lr 1");
  EXPECT_EQ(printable_command("a\n\x1b[31mb\x7f"s, "a", 100), "a ?[31mb?");
  EXPECT_EQ(printable_command("a\xc2\x9bm\xffz", "a", 100), "a?m?z");
  EXPECT_EQ(printable_command("", "k\033w", 100), "[k?w]");
  EXPECT_EQ(printable_command("", "kworker/0:1", 100), "[kworker/0:1]");
  EXPECT_EQ(printable_command("\0\0"s, "x", 100), "[x]");
  EXPECT_EQ(printable_command("abcdef", "x", 3), "abc");
}

TEST(Processes, ThisOneIsThereWithItsParent) {
  const auto all = list_processes(::getuid());
  const auto self = all.find(::getpid());
  ASSERT_NE(self, all.end());
  EXPECT_EQ(self->second.stat.parent, ::getppid());
  EXPECT_EQ(self->second.uid, ::getuid());
  EXPECT_FALSE(self->second.stat.over);
  EXPECT_GE(now_in_ticks(), self->second.stat.start);
  EXPECT_EQ(all.count(::getppid()), 1u);
}

// In this process alone, /tmp has nothing but that folder. False: the system does not allow that.
bool hide_tmp_but(const std::string& folder) {
  const std::string own = std::to_string(::getuid()) + " " + std::to_string(::getuid()) + " 1";
  const bool has_rights = ::unshare(CLONE_NEWNS) == 0;
  if (!has_rights) {
    if (::unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) return false;
    const Fd map(::open("/proc/self/uid_map", O_WRONLY | O_CLOEXEC));
    if (!map || !write_all(map.get(), own)) return false;
  }
  return ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
         ::mount("none", "/tmp", "tmpfs", 0, nullptr) == 0 && ::mkdir(folder.c_str(), 0700) == 0;
}

// The entry of a `sleep 1000` with that environment, and perhaps a /tmp of its own with that folder.
Process list_child(std::vector<std::string> environment, const std::string& private_folder = "") {
  auto ready = make_pipe();
  std::vector<char*> variables;
  for (auto& variable : environment) variables.push_back(variable.data());
  variables.push_back(nullptr);
  const pid_t child = ::fork();
  if (child == 0) {
    if (!private_folder.empty() && !hide_tmp_but(private_folder)) ::_exit(126);
    // The exec closes the child's end; by then the new environment is in place.
    const char* argv[] = {"sleep", "1000", nullptr};
    ::execve("/bin/sleep", const_cast<char**>(argv), variables.data());
    ::_exit(127);
  }
  ready->write.reset();
  char byte = 0;
  EXPECT_EQ(::read(ready->read.get(), &byte, 1), 0);
  auto all = list_processes(std::nullopt);
  EXPECT_EQ(all.count(child), 1u);
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  return all[child];
}

TEST(Processes, TheMarkOfAChildIsRead) {
  const Process child = list_child({"DRUN_JOB_ID=feed", "DRUN_RANK=3"});
  EXPECT_EQ(child.mark.job_id, "feed");
  EXPECT_EQ(child.mark.rank, 3);
  EXPECT_EQ(child.command, "sleep 1000");
}

TEST(Processes, AnEnvironmentOfAnAgentWithoutAFolderHereIsNoMark) {
  std::string folder = "/tmp/drun-process-list-XXXXXX";
  ASSERT_NE(::mkdtemp(folder.data()), nullptr);
  const std::vector<std::string> environment = {"DRUN_JOB_ID=feed", "DRUN_RANK=3", "DRUN_AGENT=" + folder + "/agent"};
  EXPECT_EQ(list_child(environment).mark.job_id, "feed");
  ASSERT_EQ(::rmdir(folder.c_str()), 0);
  const Process child = list_child(environment);
  EXPECT_EQ(child.mark.job_id, "");
  EXPECT_EQ(child.mark.rank, -1);
  const Process apart = list_child(environment, folder);
  if (apart.stat.over) GTEST_SKIP() << "no mount namespaces for this user";
  EXPECT_EQ(apart.mark.job_id, "feed") << "its /tmp is its own";
}

}  // namespace
}  // namespace drun::agent
