// The same loop over an allreduce of f32 sums for each contender: drun, or MPI with -DUSE_MPI. Rank 0 prints, for each
// size in bytes on the command line, the microseconds per call: the median of five blocks of calls. "/100" on the
// command line divides the number of calls by 100 for the sizes that follow.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <vector>

#ifdef USE_MPI
#include <mpi.h>
#else
#include <drun/drun.hpp>
#endif

namespace {

using Clock = std::chrono::steady_clock;

#ifdef USE_MPI
class All {
 public:
  All() { MPI_Init(nullptr, nullptr); }
  ~All() { MPI_Finalize(); }
  int rank() const {
    int rank = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    return rank;
  }
  void allreduce(std::vector<float>& data) {
    MPI_Allreduce(MPI_IN_PLACE, data.data(), static_cast<int>(data.size()), MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
  }
  void barrier() { MPI_Barrier(MPI_COMM_WORLD); }
};
#else
using All = drun::Communicator;
#endif

double seconds_since(Clock::time_point began) { return std::chrono::duration<double>(Clock::now() - began).count(); }

}  // namespace

int main(int argc, char** argv) {
  All all;
  int divisor = 1;
  for (int i = 1; i < argc; ++i) {
    if (*argv[i] == '/') {
      divisor = std::atoi(argv[i] + 1);
      continue;
    }
    const long bytes = std::atol(argv[i]);
    std::vector<float> data(static_cast<std::size_t>(bytes) / sizeof(float), 0.0f);
    // A block should take some ten milliseconds; the number of calls is a guess that all ranks share.
    const int all_calls = bytes <= 4096 ? 5000 : bytes <= (256 << 10) ? 400 : bytes <= (4 << 20) ? 30 : 4;
    const int n = std::max(all_calls / divisor, 2);
    for (int warm = 0; warm < 3; ++warm) all.allreduce(data);
    std::vector<double> times;
    for (int block = 0; block < 5; ++block) {
      all.barrier();
      const auto began = Clock::now();
      for (int call = 0; call < n; ++call) all.allreduce(data);
      times.push_back(seconds_since(began) / n);
    }
    std::sort(times.begin(), times.end());
    if (all.rank() == 0) std::printf("%ld %.3f\n", bytes, times[2] * 1e6);
  }
}
