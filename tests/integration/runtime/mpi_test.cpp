// libdrun compared with MPI: the same calls on the same random data have the same results.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <random>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "runtime/include/drun/drun.h"
#include "tests/integration/runtime/job_server.h"
#include "tests/integration/runtime/same_calls.h"

namespace drun {
namespace {

using testing::Record;

class Folder {
 public:
  Folder() {
    char path[] = "/tmp/drun-test-XXXXXX";
    if (::mkdtemp(path) == nullptr) throw std::runtime_error("mkdtemp");
    path_ = path;
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  std::string path(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

std::string contents(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

#ifdef MPI_PROGRAM
// Returns the exit status; 124 after a timeout. mpiexec has a process group of its own, so that the ranks end with it.
int run_mpi(int size, const std::string& seed, const std::string& folder, const std::string& log) {
  const std::string n = std::to_string(size);
  const char* const argv[] = {MPIEXEC,      MPIEXEC_NUMPROC_FLAG, n.c_str(), MPI_PROGRAM,
                              seed.c_str(), folder.c_str(),       nullptr};
  // There are more ranks than cores, and the user may be root: Open MPI must be told, other MPIs don't know these
  // names.
  for (const char* name : {"OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM",
                           "OMPI_MCA_rmaps_base_oversubscribe", "OMPI_MCA_mpi_yield_when_idle"}) {
    ::setenv(name, "1", 1);
  }
  ::setenv("PRTE_MCA_rmaps_default_mapping_policy", ":oversubscribe", 1);
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::setpgid(0, 0);
    ::dup2(::open("/dev/null", O_RDONLY), 0);
    ::dup2(::open(log.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600), 1);
    ::dup2(1, 2);
    ::execv(argv[0], const_cast<char* const*>(argv));
    ::_exit(127);
  }
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  int status = 0;
  while (::waitpid(pid, &status, WNOHANG) == 0) {
    if (std::chrono::steady_clock::now() > deadline) {
      ::kill(-pid, SIGKILL);
      ::waitpid(pid, &status, 0);
      return 124;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
#endif

// Maximum difference between two results whose n numbers of 0.5 to 1.5 were added, or multiplied, in any two orders:
// each is off by at most n - 1 roundings of its value so far.
template <typename T>
double bound(int op, double value, int n) {
  const double rounding = std::numeric_limits<T>::epsilon() / 2;
  if (op == DRUN_SUM) return 2 * (n - 1) * rounding * 1.5 * n;
  if (op == DRUN_PROD) return 2.01 * (n - 1) * rounding * std::abs(value);
  return 0;
}

template <typename T>
void expect_close(const Record& record, const char* ours, const char* mpis, int n_ranks) {
  for (std::size_t i = 0; i < record.n_bytes / sizeof(T); ++i) {
    T a, b;
    std::memcpy(&a, ours + i * sizeof(T), sizeof(T));
    std::memcpy(&b, mpis + i * sizeof(T), sizeof(T));
    const double off = std::abs(static_cast<double>(a) - static_cast<double>(b));
    if (!(off <= bound<T>(record.op, static_cast<double>(b), n_ranks))) {
      FAIL() << "element " << i << ": " << a << ", MPI: " << b;
    }
  }
}

// Compares the results of a rank with MPI's.
void expect_same(const std::string& ours, const std::string& mpis, int n_ranks) {
  ASSERT_EQ(ours.size(), mpis.size());
  int n_records = 0;
  for (std::size_t at = 0; at < ours.size(); ++n_records) {
    Record record, other;
    ASSERT_LE(at + sizeof record, ours.size());
    std::memcpy(&record, ours.data() + at, sizeof record);
    std::memcpy(&other, mpis.data() + at, sizeof other);
    SCOPED_TRACE(std::string(record.label) + ", type " + std::to_string(record.dtype) + ", reduction " +
                 std::to_string(record.op));
    ASSERT_EQ(std::memcmp(&record, &other, sizeof record), 0) << "MPI: " << other.label;
    at += sizeof record;
    ASSERT_LE(record.n_bytes, ours.size() - at);
    const char *one = ours.data() + at, *two = mpis.data() + at;
    if (record.op >= 0 && record.dtype == DRUN_FLOAT32) {
      expect_close<float>(record, one, two, n_ranks);
    } else if (record.op >= 0 && record.dtype == DRUN_FLOAT64) {
      expect_close<double>(record, one, two, n_ranks);
    } else {
      ASSERT_EQ(std::memcmp(one, two, record.n_bytes), 0);
    }
    if (::testing::Test::HasFatalFailure()) return;
    at += record.n_bytes;
  }
  EXPECT_GT(n_records, 400);
}

TEST(Mpi, HasTheSameResultsOfTheSameCalls) {
#ifndef MPI_PROGRAM
  GTEST_SKIP() << "built without MPI: install libopenmpi-dev or libmpich-dev";
#else
  const std::string seed = std::to_string(std::random_device()());
  SCOPED_TRACE("seed " + seed);
  struct StreamPlan {
    const char* name;
    bool shares_memory;
    int ranks_per_host;
  };
  const std::pair<int, std::vector<StreamPlan> > jobs[] = {{3, {{"memory", true, 0}, {"network", false, 0}}},
                                                           {4, {{"hosts", true, 2}}}};
  for (const auto& [size, ways] : jobs) {
    const Folder folder;
    const std::string mpi = folder.path("mpi"), log = folder.path("log");
    std::filesystem::create_directory(mpi);
    ASSERT_EQ(run_mpi(size, seed, mpi, log), 0) << contents(log);
    for (const StreamPlan& way : ways) {
      SCOPED_TRACE(std::to_string(size) + " ranks, " + way.name);
      const std::string drun = folder.path(way.name);
      std::filesystem::create_directory(drun);
      testing::JobOptions options;
      options.size = size;
      options.shares_memory = way.shares_memory;
      options.ranks_per_host = way.ranks_per_host;
      for (const auto& end : testing::run_job({SAME_CALLS, seed, drun}, options)) {
        ASSERT_EQ(end.status, 0) << end.rank << ": " << end.output;
      }
      for (int rank = 0; rank < size; ++rank) {
        SCOPED_TRACE("rank " + std::to_string(rank));
        const std::string name = "/" + std::to_string(rank);
        expect_same(contents(drun + name), contents(mpi + name), size);
      }
    }
  }
#endif
}

}  // namespace
}  // namespace drun
