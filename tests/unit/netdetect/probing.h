// A loop, a listener and a batch of probes, for tests.
#pragma once

#include <boost/asio/ip/tcp.hpp>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "netdetect/probe.h"

namespace drun::netdetect::testing {

inline const std::string kToken = "0123456789abcdef";

// Owns the loop of one test. Runs coroutines to their end, within `limit`.
class Loop {
 public:
  asio::io_context& io() { return io_; }

  bool run(Task<void> task, std::chrono::seconds limit = std::chrono::seconds(30)) {
    bool ended = false;
    asio::co_spawn(io_, std::move(task), [&ended](std::exception_ptr e) {
      if (e) std::rethrow_exception(e);
      ended = true;
    });
    const auto deadline = Clock::now() + limit;
    io_.restart();
    while (!ended && Clock::now() < deadline) {
      if (io_.run_one_until(deadline) == 0) break;
    }
    return ended;
  }

  std::vector<ProbeResult> probe(std::vector<ProbeTarget> targets, std::chrono::milliseconds timeout, int parallel = 32,
                                 std::string token = kToken) {
    auto out = std::make_shared<std::vector<ProbeResult>>();
    last_ended_ = run(probe_into(std::move(targets), std::move(token), timeout, parallel, out));
    return *out;
  }

  ProbeResult probe(const std::string& address, int port, std::chrono::milliseconds timeout = std::chrono::seconds(5),
                    std::string token = kToken) {
    const auto results = probe({{1, address, port}}, timeout, 1, std::move(token));
    return results.size() == 1 ? results[0] : ProbeResult{};
  }

  bool stop(ProbeListener& listener) {
    listener.stop();
    return run(listener.join());
  }

 private:
  static Task<void> probe_into(std::vector<ProbeTarget> targets, std::string token, std::chrono::milliseconds timeout,
                               int parallel, std::shared_ptr<std::vector<ProbeResult>> out) {
    *out = co_await probe_all(std::move(targets), std::move(token), timeout, parallel);
  }

  asio::io_context io_;
  bool last_ended_ = false;
};

}  // namespace drun::netdetect::testing
