#include "launcher/run/worker_input.h"

#include <algorithm>
#include <utility>

#include "base/error_id.h"
#include "control/messages.h"

namespace drun::launcher {

namespace {

constexpr std::size_t kBudget = 32u << 20;               // bytes in flight, over all readers
constexpr auto kStallNotice = std::chrono::seconds(30);  // how long others wait for a rank that does not read

std::size_t window_for(std::size_t n_readers) {
  return std::clamp<std::size_t>(kBudget / n_readers, 32u << 10, 1u << 20);
}

}  // namespace

WorkerInput::WorkerInput(asio::io_context& io, Reporter& reporter, Supervisor& supervisor,
                         std::vector<AgentChannel*> hosts, Placement placement, const std::vector<int>& readers)
    : reporter_(reporter),
      supervisor_(supervisor),
      hosts_(std::move(hosts)),
      placement_(std::move(placement)),
      flow_(readers, window_for(readers.size())),
      reader_(
          io, window_for(readers.size()), [this](const std::string& bytes) { send(bytes); }, [this] { send_end(); }),
      stopped_(io.get_executor()) {}

Task<void> WorkerInput::read() { return reader_.run(); }

void WorkerInput::send(const std::string& bytes) {
  for (const auto& place : placement_.ranks) {
    if (!flow_.gets(place.rank)) continue;
    control::Input m;
    m.rank = static_cast<std::uint32_t>(place.rank);
    m.bytes = bytes;
    hosts_[static_cast<std::size_t>(place.host)]->send_bulk(control::Type::kStdin, control::encode(m));
  }
  flow_.sent(bytes.size(), Clock::now());
}

void WorkerInput::send_end() {
  for (const auto& place : placement_.ranks) {
    if (!flow_.gets_end(place.rank)) continue;
    control::Input m;
    m.rank = static_cast<std::uint32_t>(place.rank);
    hosts_[static_cast<std::size_t>(place.host)]->send_bulk(control::Type::kStdinEnd, control::encode(m));
  }
}

void WorkerInput::on_taken(int rank, std::uint64_t n_bytes) {
  reader_.add_credit(n_bytes == kRankOver ? flow_.over(rank)
                                          : flow_.taken(rank, static_cast<std::size_t>(n_bytes), Clock::now()));
  if (!flow_.has_reached_gap(rank) || supervisor_.stopping()) return;
  const std::string name = "rank " + std::to_string(rank);
  Error error(Errc::kPeerFailed, name, "began to read its standard input after the others had gone on without it");
  reporter_.error(std::move(error).with_hint("--stdin 0, and rank 0 hands it on").with_id(error_id::kStdin));
  supervisor_.stop(1, name + " would miss a part of its standard input");
}

Task<void> WorkerInput::watch() {
  while (!co_await stopped_.wait_until(Clock::now() + std::chrono::seconds(1))) {
    for (const auto& stalled : flow_.stalled(Clock::now(), kStallNotice)) {
      const std::string name = "rank " + std::to_string(stalled.rank);
      const std::string waited = " for " + std::to_string(kStallNotice.count()) + " s";
      reporter_.warning(stalled.left_behind
                            ? name + " has not read its standard input" + waited + ": the others go on without it"
                            : name + " has read nothing more of its standard input" + waited +
                                  ": the others wait for it");
    }
    reader_.add_credit(flow_.take_credit());
  }
}

void WorkerInput::stop() {
  reader_.stop();
  stopped_.notify();
}

}  // namespace drun::launcher
