// Processors and processor time of the programs that measure a server and its client.
#pragma once

#include <sched.h>
#include <sys/resource.h>

namespace perf {

// From now on this process has that one of its processors alone, if it has several. Over loopback the kernel moves the
// server to its client's processor, where one would wait for the other; in a job they are on several machines.
inline void use_processor(int number) {
  cpu_set_t all, one;
  if (::sched_getaffinity(0, sizeof all, &all) != 0 || CPU_COUNT(&all) < 2) return;
  CPU_ZERO(&one);
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &all) && number-- == 0) CPU_SET(cpu, &one);
  }
  ::sched_setaffinity(0, sizeof one, &one);
}

// Processor time of the children that have ended, in milliseconds.
inline long cpu_ms_of_children() {
  rusage use{};
  ::getrusage(RUSAGE_CHILDREN, &use);
  return 1000 * (use.ru_utime.tv_sec + use.ru_stime.tv_sec) + (use.ru_utime.tv_usec + use.ru_stime.tv_usec) / 1000;
}

}  // namespace perf
