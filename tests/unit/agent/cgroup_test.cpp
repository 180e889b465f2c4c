#include "agent/cgroup.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <string>
#include <thread>
#include <vector>

#include "agent/leftovers.h"
#include "agent/life_lock.h"
#include "tests/temp_folder.h"

namespace drun::agent {
namespace {

TEST(CgroupMounts, OneBesideVersion1IsFound) {
  const auto mounts = cgroup2_mounts(
      "31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755\n"
      "36 31 0:33 / /sys/fs/cgroup/devices rw,relatime - cgroup cgroup rw,devices\n"
      "41 31 0:38 / /sys/fs/cgroup/unified rw,relatime shared:9 master:1 - cgroup2 cgroup2 rw\n");
  ASSERT_EQ(mounts.size(), 1u);
  EXPECT_EQ(mounts[0].root, "/");
  EXPECT_EQ(mounts[0].point, "/sys/fs/cgroup/unified");
}

TEST(CgroupMounts, EscapedNamesAndBrokenLines) {
  const auto mounts = cgroup2_mounts("1 2 0:3 /a\\040b /c\\134d rw - cgroup2 x rw\n- cgroup2\n1 2 3 cgroup2\n\n");
  ASSERT_EQ(mounts.size(), 1u);
  EXPECT_EQ(mounts[0].root, "/a b");
  EXPECT_EQ(mounts[0].point, "/c\\d");
}

TEST(CgroupPath, IsTheOneOfVersion2) {
  EXPECT_EQ(cgroup2_path("8:pids:/x\n0::/user.slice/a:b\n"), "/user.slice/a:b");
  EXPECT_EQ(cgroup2_path("0::/\n"), "/");
  EXPECT_EQ(cgroup2_path("8:pids:/x\n"), std::nullopt);
  EXPECT_EQ(cgroup2_path(""), std::nullopt);
}

TEST(CgroupDirectory, FollowsTheMount) {
  EXPECT_EQ(cgroup_directory({"/", "/sys/fs/cgroup"}, "/"), "/sys/fs/cgroup");
  EXPECT_EQ(cgroup_directory({"/", "/sys/fs/cgroup"}, "/a/b"), "/sys/fs/cgroup/a/b");
  EXPECT_EQ(cgroup_directory({"/docker/1", "/cg"}, "/docker/1/a"), "/cg/a");
  EXPECT_EQ(cgroup_directory({"/docker/1", "/cg"}, "/docker/1"), "/cg");
}

TEST(CgroupDirectory, NothingForWhatTheMountDoesNotShow) {
  EXPECT_EQ(cgroup_directory({"/docker/1", "/cg"}, "/docker/12"), std::nullopt);
  EXPECT_EQ(cgroup_directory({"/docker/1", "/cg"}, "/"), std::nullopt);
  EXPECT_EQ(cgroup_directory({"/", "/cg"}, "/../x"), std::nullopt);
  EXPECT_EQ(cgroup_directory({"/", "/cg"}, "/.."), std::nullopt);
  EXPECT_EQ(cgroup_directory({"/../..", "/cg"}, "/x"), std::nullopt);
}

TEST(CgroupName, TellsTheJob) {
  const std::string name = cgroup_name({"0123456789abcdef", 42}, 0xbeef);
  EXPECT_EQ(name, "drun-0123456789abcdef-42-0000beef");
  const auto back = parse_cgroup_name(name);
  ASSERT_TRUE(back.has_value());
  EXPECT_EQ(back->job_id, "0123456789abcdef");
  EXPECT_EQ(back->agent, 42);
}

TEST(CgroupName, OthersAreNotTakenForOurs) {
  for (const char* name : {"", "drun", "drun-", "drun-abc", "drun-abc-1", "drun--1-00000000", "drun-abc-x-00000000",
                           "drun-abc-1-0000000", "drun-abc-1-0000000g", "drun-train-1-00000000", "xdrun-abc-1-00000000",
                           "drun-abc-1-00000000-", "drun-abc-1-00000000.scope"}) {
    EXPECT_FALSE(parse_cgroup_name(name).has_value()) << name;
  }
}

TEST(CgroupName, TheInnermostJobOwnsAProcess) {
  EXPECT_EQ(job_of_cgroup("/a/drun-aa-1-00000000/b"), "aa");
  EXPECT_EQ(job_of_cgroup("/drun-aa-1-00000000/drun-bb-2-00000000"), "bb");
  EXPECT_EQ(job_of_cgroup("/user.slice/drun-1000"), "");
  EXPECT_EQ(job_of_cgroup("/"), "");
}

// Real cgroups, if this user may make them.
class JobCgroups : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto announce = [this](const std::string& directory) {
      announced_ = directory;
      return true;
    };
    auto made = JobCgroup::create(read_cgroup_files(), "abcd", announce);
    if (!made && mount_own()) made = JobCgroup::create(read_cgroup_files(), "abcd", announce);
    if (!made) GTEST_SKIP() << made.error().message();
    cgroup_ = std::move(*made);
  }
  void TearDown() override {
    if (cgroup_.directory().empty()) return;
    kill_cgroup(cgroup_.directory());
    EXPECT_TRUE(remove_cgroup(cgroup_.directory(), Clock::now() + std::chrono::seconds(10)));
    if (mounted_.empty()) return;
    ::umount2(mounted_.c_str(), MNT_DETACH);
    ::rmdir(mounted_.c_str());
  }
  // Mounts the hierarchy for this process alone, if none is mounted, as in a bare chroot.
  bool mount_own() {
    std::string place = ::testing::TempDir() + "drun-cgroup-XXXXXX";
    if (::mkdtemp(place.data()) == nullptr) return false;
    const bool mounted = ::unshare(CLONE_NEWNS) == 0 &&
                         ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
                         ::mount("none", place.c_str(), "cgroup2", 0, nullptr) == 0;
    if (mounted) {
      mounted_ = place;
    } else {
      ::rmdir(place.c_str());
    }
    return mounted;
  }
  bool exists() const { return ::access(cgroup_.directory().c_str(), F_OK) == 0; }

  std::string announced_, mounted_;
  JobCgroup cgroup_;
};

// A kernel before 5.14 has no cgroup.kill. Its files are those of a plain folder here.
TEST(OldKernelsCgroups, EndPidByPidWithThoseBelowThem) {
  const testing::TempFolder folder;
  std::vector<pid_t> children;
  for (int i = 0; i < 3; ++i) {
    children.push_back(::fork());
    ASSERT_GE(children.back(), 0);
    if (children.back() == 0) {
      for (;;) ::pause();
    }
  }
  folder.write("cgroup.procs", std::to_string(children[0]) + "\n");
  folder.write("below/of/it/cgroup.procs", std::to_string(children[1]) + "\n");
  kill_cgroup(folder.path());
  int status = 0;
  EXPECT_EQ(::waitpid(children[2], &status, WNOHANG), 0) << "no member";
  ::kill(children[2], SIGTERM);
  for (std::size_t i = 0; i < children.size(); ++i) {
    if (i < 2 && ::waitpid(children[i], &status, WNOHANG) == 0) {
      ADD_FAILURE() << "child " << i << " was not killed";
      ::kill(children[i], SIGKILL);
    }
    ::waitpid(children[i], &status, 0);
    EXPECT_EQ(WTERMSIG(status), i < 2 ? SIGKILL : SIGTERM);
  }
}

TEST_F(JobCgroups, AreAnnouncedAsTheyAreMade) {
  EXPECT_EQ(announced_, cgroup_.directory());
  EXPECT_TRUE(exists());
}

TEST_F(JobCgroups, EndWithAllTheirMembers) {
  auto ready = make_pipe();
  ASSERT_TRUE(ready.has_value());
  const pid_t child = ::fork();
  if (child == 0) {
    if (::write(cgroup_.procs_fd(), "0", 1) != 1) ::_exit(9);
    const pid_t grandchild = ::fork();
    if (grandchild == 0) ::setsid();
    if (::write(ready->write.get(), ".", 1) != 1) ::_exit(8);
    for (;;) ::pause();
  }
  ready->write.reset();
  char byte = 0;
  ASSERT_EQ(::read(ready->read.get(), &byte, 1), 1);
  ASSERT_EQ(::read(ready->read.get(), &byte, 1), 1);
  kill_cgroup(cgroup_.directory());
  EXPECT_EQ(::read(ready->read.get(), &byte, 1), 0);  // no process holds the other end any more
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFSIGNALED(status));
  EXPECT_TRUE(remove_cgroup(cgroup_.directory(), Clock::now() + std::chrono::seconds(10)));
  EXPECT_FALSE(exists());
}

TEST_F(JobCgroups, AMemberKeepsOneFromBeingRemoved) {
  auto end = make_pipe();
  ASSERT_TRUE(end.has_value());
  auto entered = make_pipe();
  ASSERT_TRUE(entered.has_value());
  const pid_t child = ::fork();
  if (child == 0) {
    end->write.reset();
    if (::write(cgroup_.procs_fd(), "0", 1) != 1 || ::write(entered->write.get(), ".", 1) != 1) ::_exit(9);
    char byte = 0;
    if (::read(end->read.get(), &byte, 1) != 0) ::_exit(8);
    ::_exit(0);
  }
  char byte = 0;
  ASSERT_EQ(::read(entered->read.get(), &byte, 1), 1);
  EXPECT_FALSE(remove_cgroup(cgroup_.directory(), Clock::now()));
  end->write.reset();
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(remove_cgroup(cgroup_.directory(), Clock::now() + std::chrono::seconds(10)));
}

// Each agent gets a cgroup that exists and is locked, even if a cleaner keeps removing them.
TEST_F(JobCgroups, AreNotRemovedFromUnderAnAgentThatHasOnlyBegun) {
  std::atomic<bool> over = false;
  std::thread remover([&] {
    CleanScope scope;
    scope.job_id = "abce";
    while (!over) {
      for (const auto& directory : find_directories(scope)) remove_directory(directory);
    }
  });
  for (int i = 0; i < 300; ++i) {
    const auto made = JobCgroup::create(read_cgroup_files(), "abce", [](const std::string&) { return true; });
    EXPECT_TRUE(made.has_value()) << made.error().message();
    if (!made) continue;
    EXPECT_FALSE(lock_as_remover(made->directory()).has_value());
    EXPECT_EQ(::access(made->directory().c_str(), F_OK), 0);
    EXPECT_TRUE(remove_cgroup(made->directory(), Clock::now() + std::chrono::seconds(10)));
  }
  over = true;
  remover.join();
}

}  // namespace
}  // namespace drun::agent
