#include "launcher/run/open_files.h"

#include <gtest/gtest.h>

#include "rendezvous/server.h"

namespace drun::launcher {
namespace {

OpenFiles job_of(std::size_t n_hosts, std::size_t n_workers) {
  OpenFiles files;
  files.n_hosts = n_hosts;
  files.n_workers = n_workers;
  return files;
}

TEST(OpenFiles, StrangersGetWhatTheJobLeaves) {
  EXPECT_EQ(check_open_files(job_of(1000, 8000), 20000).value_or(0), rendezvous::kSpareConnections);
  EXPECT_EQ(check_open_files(job_of(1000, 8000), 0).value_or(0), rendezvous::kSpareConnections);
  EXPECT_EQ(check_open_files(job_of(1, 2), 128).value_or(0), 128u - 64 - 4 - 2);
  EXPECT_EQ(check_open_files(job_of(1, 2), 64 + 4 + 2 + 16).value_or(0), 16u);
  EXPECT_FALSE(check_open_files(job_of(1, 2), 64 + 4 + 2 + 15));
}

TEST(OpenFiles, RelayedWorkersNeedTwo) {
  OpenFiles files = job_of(10, 100);
  files.n_relayed = 50;
  const std::size_t job = 64 + 40 + 100 + 50;
  EXPECT_EQ(check_open_files(files, job + 2 * 16).value_or(0), 16u);
  EXPECT_EQ(check_open_files(files, job + 2 * 100).value_or(0), 100u);
  EXPECT_FALSE(check_open_files(files, job + 2 * 16 - 1));
}

TEST(OpenFiles, RanksOfARealHorovodConnectTwice) {
  OpenFiles files = job_of(10, 100);
  files.serves_horovod = true;
  const std::size_t job = 64 + 40 + 3 * 100;
  EXPECT_EQ(check_open_files(files, job + 16).value_or(0), 16u);
  EXPECT_FALSE(check_open_files(files, job + 15));
}

TEST(OpenFiles, TooLowALimitIsSaidWithWhatIsNeeded) {
  OpenFiles files = job_of(2, 600);
  files.has_output_files = true;
  const auto checked = check_open_files(files, 128);
  ASSERT_FALSE(checked);
  EXPECT_EQ(checked.error().message(),
            "open files: 2 hosts and 600 workers need about 1888 descriptors, and the hard limit here is 128");
  EXPECT_EQ(checked.error().hint.substr(0, 27), "as root: ulimit -Hn 1888; f");
}

}  // namespace
}  // namespace drun::launcher
