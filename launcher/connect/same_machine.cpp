#include "launcher/connect/same_machine.h"

#include <sodium.h>

#include <algorithm>
#include <string>
#include <utility>

#include "netdetect/proof.h"

namespace drun::launcher {

namespace {

constexpr auto kProbeTime = std::chrono::milliseconds(2000);  // loopback answers or refuses at once

// `reached` is true if `from` says that it has reached a listener of `to` at its own loopback.
Task<void> reach(AgentChannel& from, AgentChannel& to, Deadline deadline, bool& reached) {
  std::string token(netdetect::kTokenBytes, '\0');
  randombytes_buf(token.data(), token.size());
  control::ProbeListen listen;
  listen.token = token;
  std::string body = control::encode(listen);
  const auto listening = co_await to.request(control::Type::kProbeListen, std::move(body),
                                             control::Type::kProbeListening, "identity", deadline);
  if (!listening) co_return;
  const auto port = control::decode<control::Port>(listening->body);
  if (!port || !port->error.empty()) co_return;
  control::ProbeRun run;
  run.token = token;
  run.timeout_ms = static_cast<std::uint32_t>(kProbeTime.count());
  run.parallel = 2;
  for (const char* address : {"127.0.0.1", "::1"}) {
    netdetect::ProbeTarget target;
    target.address = address;
    target.port = port->port;
    run.targets.push_back(std::move(target));
  }
  body = control::encode(run);
  const auto results = co_await from.request(control::Type::kProbeRun, std::move(body), control::Type::kProbeResults,
                                             "identity", deadline);
  if (!results) co_return;
  const auto answer = control::decode<control::ProbeResults>(results->body);
  reached = answer && std::any_of(answer->results.begin(), answer->results.end(), [](const auto& result) {
              return result.outcome == netdetect::ProbeOutcome::kReached;
            });
}

}  // namespace

Task<bool> share_loopback(AgentChannel& one, AgentChannel& other, Deadline deadline) {
  bool there = false, back = false;
  TaskGroup both(co_await asio::this_coro::executor);
  both.spawn(reach(one, other, deadline, there));
  both.spawn(reach(other, one, deadline, back));
  co_await both.join();
  const bool is_proven = there && back;
  co_return is_proven;
}

}  // namespace drun::launcher
