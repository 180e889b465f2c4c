#include "agent/oom_watch.h"

#include <gtest/gtest.h>

#include "tests/temp_folder.h"

namespace drun::agent {
namespace {

using Files = std::vector<std::vector<std::string>>;

Files files_of(const char* own, const char* mountinfo) { return oom_counter_files(CgroupFiles{own, mountinfo}); }

TEST(OomWatch, FindsTheCountersOfVersionTwoUpToTheRoot) {
  EXPECT_EQ(files_of("0::/user.slice/job:1\n",
                     "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n"),
            (Files{{"/sys/fs/cgroup/user.slice/job:1/memory.events", "/sys/fs/cgroup/user.slice/memory.events",
                    "/sys/fs/cgroup/memory.events"}}));
}

TEST(OomWatch, FindsTheCountersOfVersionOne) {
  EXPECT_EQ(files_of("6:memory:/a\n5:cpu,cpuacct:/a\n0::/b\n",
                     "35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n"
                     "36 31 0:33 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct\n"),
            (Files{{"/sys/fs/cgroup/memory/a/memory.oom_control", "/sys/fs/cgroup/memory/memory.oom_control"}}));
}

TEST(OomWatch, ACgroupBelowTheMountsRootIsNamedFromThere) {
  EXPECT_EQ(files_of("0::/docker/1/x\n", "30 23 0:26 /docker/1 /sys/fs/cgroup rw - cgroup2 none rw\n"),
            (Files{{"/sys/fs/cgroup/x/memory.events", "/sys/fs/cgroup/memory.events"}}));
}

TEST(OomWatch, OnlyTheMountIsLeftWhereOurPathIsNotShown) {
  EXPECT_EQ(files_of("0::/docker/2\n", "30 23 0:26 /docker/1 /my\\040cgroups rw - cgroup2 none rw\n"),
            (Files{{"/my cgroups/memory.events"}}));
}

TEST(OomWatch, WithoutMountsThereAreNone) {
  EXPECT_EQ(files_of("0::/a\n", ""), Files{});
  EXPECT_EQ(files_of("nonsense", "nonsense\n\n1 2 3"), Files{});
}

TEST(OomWatch, ReadsBothKindsOfCounters) {
  EXPECT_EQ(oom_kills("low 0\nhigh 0\nmax 12\noom 3\noom_kill 2\noom_group_kill 9\n"), 2u);
  EXPECT_EQ(oom_kills("oom_kill_disable 0\nunder_oom 0\noom_kill 7\n"), 7u);
  EXPECT_EQ(oom_kills("oom_kill_disable 1\n"), 0u);
  EXPECT_EQ(oom_kills(""), 0u);
}

OomWatch watch_of(const drun::testing::TempFolder& cgroups, const std::string& own) {
  return OomWatch(CgroupFiles{"0::" + own + "\n", "30 23 0:26 / " + cgroups.path() + " rw - cgroup2 none rw\n"});
}

// A cgroup with its parent as folders: another job's process was killed, and then one of ours.
TEST(OomWatch, AKillInAnAncestorIsNoEvidence) {
  const drun::testing::TempFolder folder;
  folder.write("slice/memory.events", "oom_kill 1\n");
  folder.write("slice/own/memory.events", "oom_kill 0\n");
  OomWatch watch = watch_of(folder, "/slice/own");
  folder.write("slice/memory.events", "oom_kill 2\n");
  EXPECT_EQ(watch.evidence(1 << 22), "");
  folder.write("slice/memory.events", "oom_kill 3\n");
  folder.write("slice/own/memory.events", "oom_kill 1\n");
  EXPECT_NE(watch.evidence(1 << 22).find("/slice/own/memory.events: oom_kill 0 -> 1"), std::string::npos);
}

TEST(OomWatch, WithoutACounterOfOursThatOfTheNextAncestorCounts) {
  const drun::testing::TempFolder folder;
  folder.write("slice/memory.events", "oom_kill 1\n");
  OomWatch watch = watch_of(folder, "/slice/own");
  folder.write("slice/memory.events", "oom_kill 2\n");
  EXPECT_NE(watch.evidence(1 << 22).find("/slice/memory.events: oom_kill 1 -> 2"), std::string::npos);
}

// By memory.oom.group, say.
TEST(OomWatch, EachOfSeveralThatWereKilledTogetherHasEvidence) {
  const drun::testing::TempFolder folder;
  folder.write("slice/memory.events", "oom_kill 1\n");
  OomWatch watch = watch_of(folder, "/slice");
  folder.write("slice/memory.events", "oom_kill 3\n");
  EXPECT_NE(watch.evidence(1 << 22).find("oom_kill 1 -> 3"), std::string::npos);
  EXPECT_NE(watch.evidence((1 << 22) + 1).find("oom_kill 2 -> 3"), std::string::npos);
  EXPECT_EQ(watch.evidence((1 << 22) + 2), "");
}

TEST(OomWatch, HasNoEvidenceWhereNothingHappened) { EXPECT_EQ(OomWatch(read_cgroup_files()).evidence(1 << 22), ""); }

}  // namespace
}  // namespace drun::agent
