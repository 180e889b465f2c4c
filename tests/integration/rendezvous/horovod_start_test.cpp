// A start of a real Horovod with 64 ranks, as its libraries make the requests: all must be answered, and the other work
// of drun's thread must not wait. Server and ranks are processes of their own.
#include "tests/integration/rendezvous/horovod_start.h"

#include <gtest/gtest.h>

namespace drun::rendezvous::simulated {
namespace {

TEST(HorovodStart, SixtyFourRanksConnectInTwoStarts) {
  HorovodServerOptions options;
  HorovodStart start;
  options.scopes = scopes_of(start);
  options.token = make_horovod_token();
  Child server(horovod_server_process(options));
  start.port = static_cast<int>(server.number());
  ASSERT_GT(start.port, 0);
  start.prefix = "/" + options.token + ":" + std::to_string(start.port);
  // The second start would find the addresses of the first one, if those had not been dropped.
  for (int n_starts = 1; n_starts <= 2; ++n_starts) {
    HorovodStart run;
    run.port = start.port;
    run.prefix = start.prefix;
    run.number = n_starts;
    asio::io_context io(1);
    const auto begin = Clock::now();
    run_on_loop(io, start_all(run));
    const auto took = std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - begin).count();
    std::printf("%d requests, %d of them polls, in %lld ms\n", run.n_requests, run.n_polls,
                static_cast<long long>(took));
    EXPECT_EQ(run.n_done, run.n_ranks);
    EXPECT_EQ(run.n_wrong, 0);
    EXPECT_EQ(run.n_requests, requests_without_polls(run) + run.n_polls);
    EXPECT_LT(took, 30'000);  // libhorovod gives up
  }
  server.end();
  const auto late_ms = server.number(), kb = server.number();
  std::printf("event loop late by at most %lld ms; server %lld kB\n", static_cast<long long>(late_ms),
              static_cast<long long>(kb));
  EXPECT_LT(late_ms, 1000);
  EXPECT_LT(kb, 64 << 10);
}

}  // namespace
}  // namespace drun::rendezvous::simulated
