// The requests of a real Horovod's start: `horovod_start drun RANKS PER_HOST` serves them itself, in another process;
// `horovod_start other RANKS PER_HOST PORT` sends them to another server. Prints the milliseconds, the number of
// requests, those that were polls, and the milliseconds of processor time that drun's server took.
#include "tests/integration/rendezvous/horovod_start.h"

#include <sched.h>
#include <sys/resource.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

using namespace drun;
using namespace drun::rendezvous;
using namespace drun::rendezvous::simulated;

namespace {

int measure(HorovodStart& start) {
  asio::io_context io(1);
  const auto begin = Clock::now();
  run_on_loop(io, start_all(start));
  return static_cast<int>(std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - begin).count());
}

// From now on this process has that one of its processors alone, if it has several. Over loopback the kernel moves the
// server to its client's processor, where one would wait for the other; in a job they are on several machines.
void use_processor(int number) {
  cpu_set_t all, one;
  if (::sched_getaffinity(0, sizeof all, &all) != 0 || CPU_COUNT(&all) < 2) return;
  CPU_ZERO(&one);
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &all) && number-- == 0) CPU_SET(cpu, &one);
  }
  ::sched_setaffinity(0, sizeof one, &one);
}

// Processor time of the children that have ended.
long cpu_ms() {
  rusage use{};
  ::getrusage(RUSAGE_CHILDREN, &use);
  return 1000 * (use.ru_utime.tv_sec + use.ru_stime.tv_sec) + (use.ru_utime.tv_usec + use.ru_stime.tv_usec) / 1000;
}

}  // namespace

int main(int argc, char** argv) {
  const bool is_drun = argc == 4 && std::strcmp(argv[1], "drun") == 0;
  if (!is_drun && (argc != 5 || std::strcmp(argv[1], "other") != 0)) {
    std::fputs("usage: horovod_start drun RANKS PER_HOST | horovod_start other RANKS PER_HOST PORT\n", stderr);
    return 2;
  }
  HorovodStart start;
  start.n_ranks = std::atoi(argv[2]);
  start.per_host = std::atoi(argv[3]);
  if (start.n_ranks < 1 || start.per_host < 1 || start.n_ranks % start.per_host != 0) return 2;
  int ms = 0;
  if (is_drun) {
    HorovodServerOptions options;
    options.scopes = scopes_of(start);
    options.token = make_horovod_token();
    const auto serve = horovod_server_process(options);
    Child server([&serve](int out, int end) {
      use_processor(1);
      serve(out, end);
    });
    use_processor(0);
    start.port = static_cast<int>(server.number());
    start.prefix = "/" + options.token + ":" + std::to_string(start.port);
    ms = measure(start);
    server.end();
    (void)server.number();  // lateness
    (void)server.number();  // memory
  } else {
    use_processor(0);
    start.port = std::atoi(argv[4]);
    ms = measure(start);
  }
  std::printf("%d %d %d %ld\n", ms, start.n_requests, start.n_polls, cpu_ms());
  const bool is_good = start.n_done == start.n_ranks && start.n_wrong == 0;
  if (!is_good) std::fprintf(stderr, "%d of %d ranks, %d wrong answers\n", start.n_done, start.n_ranks, start.n_wrong);
  return is_good ? 0 : 1;
}
