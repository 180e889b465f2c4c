#include "agent/usable_cpus.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <thread>

#include "tests/temp_folder.h"

namespace drun::agent {
namespace {

// A file system with the files that cpu_quota() reads.
class CpuQuota : public ::testing::Test {
 protected:
  void write(const std::string& path, const std::string& text) { folder_.write(path.substr(1), text); }
  std::optional<double> quota() { return cpu_quota(read_cgroup_files(root_), root_); }
  drun::testing::TempFolder folder_;
  const std::string root_ = folder_.path();
};

TEST(CpuMax, IsAShareOfThePeriod) {
  EXPECT_EQ(parse_cpu_max("150000 100000\n"), 1.5);
  EXPECT_EQ(parse_cpu_max("max 100000\n"), std::nullopt);
  EXPECT_EQ(parse_cpu_max("-1 100000"), std::nullopt);
  for (const char* text : {"", "1", "1 0", "0 1", "a b", "1 2 3"}) EXPECT_EQ(parse_cpu_max(text), std::nullopt) << text;
}

TEST_F(CpuQuota, IsTheLowestOfOurCgroupAndThoseAboveIt) {
  write("/proc/self/mountinfo", "41 31 0:38 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
  write("/proc/self/cgroup", "0::/a/b/c\n");
  EXPECT_EQ(quota(), std::nullopt);
  write("/sys/fs/cgroup/a/b/c/cpu.max", "max 100000\n");
  EXPECT_EQ(quota(), std::nullopt);
  write("/sys/fs/cgroup/a/cpu.max", "400000 100000\n");
  EXPECT_EQ(quota(), 4);
  write("/sys/fs/cgroup/a/b/cpu.max", "250000 100000\n");
  EXPECT_EQ(quota(), 2.5);
  write("/sys/fs/cgroup/a/b/c/cpu.max", "300000 100000\n");
  write("/sys/fs/cgroup/a/b/c/d/cpu.max", "100000 100000\n");  // below our cgroup
  EXPECT_EQ(quota(), 2.5);
  write("/sys/fs/cgroup/cpu.max", "50000 100000\n");  // a container with its own namespace sees its own cgroup here
  EXPECT_EQ(quota(), 0.5);
}

TEST_F(CpuQuota, IsThatOfVersion1Too) {
  write("/proc/self/mountinfo",
        "36 31 0:33 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset\n"
        "37 31 0:34 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n"
        "38 31 0:35 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n");
  write("/proc/self/cgroup", "5:cpuset:/x\n4:cpu,cpuacct:/slurm/job_7\n0::/\n");
  const std::string job = "/sys/fs/cgroup/cpu,cpuacct/slurm/job_7";
  write(job + "/cpu.cfs_quota_us", "-1\n");
  write(job + "/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(quota(), std::nullopt);
  write(job + "/cpu.cfs_quota_us", "600000\n");
  EXPECT_EQ(quota(), 6);
}

// In a container the path may be the host's, which the container's mount doesn't contain.
TEST_F(CpuQuota, IsThatOfTheMountWhereOurPathIsNotShown) {
  write("/proc/self/mountinfo", "37 31 0:34 /docker/1 /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n");
  write("/proc/self/cgroup", "4:cpu:/docker/2\n");
  write("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "200000\n");
  write("/sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(quota(), 2);
}

TEST(UsableCpus, AreThoseThatTheSchedulerLetsUsOn) {
  std::thread([] {  // the affinity ends with the thread
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(static_cast<std::size_t>(::sched_getcpu()), &one);
    ASSERT_EQ(::sched_setaffinity(0, sizeof one, &one), 0);
    EXPECT_EQ(usable_cpus(read_cgroup_files()), 1);
  })
      .join();
}

}  // namespace
}  // namespace drun::agent
