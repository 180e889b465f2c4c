// The minimum time that N processes of one machine need to meet, which is a part of every allreduce between them: one
// counter in shared memory, nothing else. A waiter spins, or yields its core if there are more processes than cores.
// Prints microseconds per meeting, the median of many short runs.
//   meeting N
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <vector>

int main(int argc, char** argv) {
  const unsigned n = argc > 1 ? static_cast<unsigned>(std::atoi(argv[1])) : 0;
  if (n < 2 || n > 1024) {
    std::fprintf(stderr, "usage: meeting N\n");
    return 2;
  }
  cpu_set_t cores;
  const bool yields = ::sched_getaffinity(0, sizeof cores, &cores) != 0 || CPU_COUNT(&cores) < static_cast<int>(n);
  void* const memory = ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return 1;
  auto& come = *static_cast<std::atomic<unsigned>*>(memory);  // arrivals at all meetings
  constexpr unsigned kRuns = 200, kMeetings = 200;
  bool is_first = true;
  for (unsigned i = 1; i < n && is_first; ++i) {
    const pid_t child = ::fork();
    if (child < 0) {
      std::perror("fork");
      return 1;  // the others wait until the signal kills them
    }
    is_first = child > 0;
    if (!is_first) ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  }
  std::vector<double> times;
  unsigned met = 0;
  for (unsigned run = 0; run < kRuns; ++run) {
    const auto began = std::chrono::steady_clock::now();
    for (unsigned i = 0; i < kMeetings; ++i) {
      met += n;
      come.fetch_add(1);
      while (static_cast<int>(come.load() - met) < 0) {
        if (yields) ::sched_yield();
      }
    }
    times.push_back(std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - began).count() /
                    kMeetings);
  }
  if (!is_first) ::_exit(0);
  std::nth_element(times.begin(), times.begin() + kRuns / 2, times.end());
  std::printf("%.2f\n", times[kRuns / 2]);
  return 0;
}
