// The requests of a real Horovod's start: `horovod_start drun RANKS PER_HOST` serves them itself, in another process;
// `horovod_start other RANKS PER_HOST PORT` sends them to another server. Prints the milliseconds, the number of
// requests, those that were polls, and the milliseconds of processor time that drun's server took.
#include "tests/integration/rendezvous/horovod_start.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "perf/programs/processors.h"

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
      perf::use_processor(1);
      serve(out, end);
    });
    perf::use_processor(0);
    start.port = static_cast<int>(server.number());
    start.prefix = "/" + options.token + ":" + std::to_string(start.port);
    ms = measure(start);
    server.end();
    (void)server.number();  // lateness
    (void)server.number();  // memory
  } else {
    perf::use_processor(0);
    start.port = std::atoi(argv[4]);
    ms = measure(start);
  }
  std::printf("%d %d %d %ld\n", ms, start.n_requests, start.n_polls, perf::cpu_ms_of_children());
  const bool is_good = start.n_done == start.n_ranks && start.n_wrong == 0;
  if (!is_good) std::fprintf(stderr, "%d of %d ranks, %d wrong answers\n", start.n_done, start.n_ranks, start.n_wrong);
  return is_good ? 0 : 1;
}
