#include "launcher/run/supervisor.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "base/clean_text.h"
#include "base/exit_status.h"
#include "base/log.h"

namespace drun::launcher {

namespace {
constexpr std::size_t kMaxNotices = 100;  // of all agents
// Bytes for a host, above which a relayed rendezvous does not add to them: orders of drun wait behind these.
constexpr std::size_t kRelayedAhead = 1u << 20;
}  // namespace

Supervisor::Supervisor(asio::io_context& io, Reporter& reporter, std::chrono::milliseconds grace)
    : io_(io),
      reporter_(reporter),
      state_(grace, [this] { return server_ == nullptr ? std::vector<int>() : server_->joined(); }),
      changed_(io.get_executor()) {}

void Supervisor::attach(Parts parts) {
  parts_ = std::move(parts);
  place(std::vector<AgentChannel*>(parts_.hosts), Placement(parts_.placement));
}

void Supervisor::place(std::vector<AgentChannel*> hosts, Placement placement) {
  std::vector<std::size_t> from;
  std::vector<std::string> names;
  for (const AgentChannel* host : hosts) {
    from.push_back(index_of(*host));
    names.push_back(host->name());
  }
  parts_.hosts = std::move(hosts);
  parts_.placement = std::move(placement);
  state_.place(parts_.placement, std::move(names), from);
}

std::size_t Supervisor::index_of(const AgentChannel& host) const {
  return static_cast<std::size_t>(std::find(parts_.hosts.begin(), parts_.hosts.end(), &host) - parts_.hosts.begin());
}

void Supervisor::add_relay(AgentChannel& host) {
  rendezvous::RelayOutput to_agent;
  AgentChannel* const agent = &host;
  to_agent.data = [agent](std::uint32_t connection, std::string bytes) {
    control::Relay m;
    m.connection = connection;
    m.bytes = std::move(bytes);
    agent->send(control::Type::kRelayData, control::encode(m));
  };
  to_agent.close = [agent](std::uint32_t connection) {
    control::Relay m;
    m.connection = connection;
    agent->send(control::Type::kRelayClose, control::encode(m));
  };
  to_agent.is_full = [agent] { return agent->queued_bytes() > kRelayedAhead; };
  rendezvous::RelaySink::Adopt adopt = [this](std::uint32_t connection, asio::generic::stream_protocol::socket socket) {
    if (connection < rendezvous::kFirstHorovodRelay) {
      server_->adopt(std::move(socket));
    } else if (horovod_ != nullptr) {
      horovod_->adopt(std::move(socket));
    }
  };
  auto& relay = relays_[&host];
  relay = rendezvous::RelaySink::create(io_.get_executor(), std::move(adopt), std::move(to_agent));
  agent->on_sent([agent, weak = std::weak_ptr(relay)] {
    const auto sink = weak.lock();
    if (sink && agent->queued_bytes() <= kRelayedAhead) sink->resume();
  });
}

void Supervisor::on_frame(AgentChannel& host, control::Frame frame) {
  using namespace control;
  const auto with = [&](auto decoded, auto&& action) {
    if (decoded) {
      action(std::move(*decoded));
    } else {
      log::info(host.name() + ": " + decoded.error().message());
    }
  };
  switch (frame.type) {
    case Type::kOutput:
      with(decode<Output>(frame.body), [&](auto m) { on_output(host, std::move(m)); });
      break;
    case Type::kOutputEnd:
      with(decode<Output>(frame.body), [&](auto m) { on_output_end(host, m); });
      break;
    case Type::kStarted:
      with(decode<Started>(frame.body), [&](auto m) {
        if (!speaks_for(host, m.rank, "the start")) return;
        state_.started(m, time());
        if (parts_.started) parts_.started(m);
      });
      break;
    case Type::kExited:
      with(decode<Exited>(frame.body), [&](auto m) {
        if (!speaks_for(host, m.rank, "the end")) return;
        state_.exited(m, host.clock().ours(static_cast<std::int64_t>(m.time_ns)), time());
        if (parts_.exited) parts_.exited(m);
      });
      break;
    case Type::kFinished:
      with(decode<Finished>(frame.body), [&](auto m) { state_.finished(index_of(host), m, time()); });
      break;
    case Type::kStdinCredit:
      with(decode<Credit>(frame.body), [&](auto m) {
        if (!speaks_for(host, m.rank, "credit for the input") || !parts_.stdin_taken) return;
        parts_.stdin_taken(static_cast<int>(m.rank), m.n_bytes == Credit::kNoMore ? kRankOver : m.n_bytes);
      });
      break;
    case Type::kRelayOpen:
    case Type::kRelayData:
    case Type::kRelayClose:
      with(decode<Relay>(frame.body), [&](auto m) { on_relay(host, frame.type, std::move(m)); });
      break;
    case Type::kNotice:
      // Hosts of one job often have the same notice.
      with(decode<Text>(frame.body), [&](auto m) {
        const std::string text = clean_line(m.text);
        if (notices_.size() < kMaxNotices && notices_.insert(text).second) reporter_.warning(host.name() + ": " + text);
      });
      break;
    default:
      log::info(host.name() + ": unexpected control frame " + std::to_string(static_cast<int>(frame.type)));
  }
  act();
}

bool Supervisor::speaks_for(AgentChannel& host, std::uint32_t rank, const char* what) {
  if (!state_.active()) return false;
  const bool is_rank = ranks().has(rank);
  const int number = static_cast<int>(rank);
  if (is_rank && parts_.hosts[static_cast<std::size_t>(ranks().at(number).host)] == &host) return true;
  host.refuse("its agent sent " + std::string(what) + " of rank " + std::to_string(rank) +
              (is_rank ? ", which runs on " + ranks().host_name(number) : ", which the job does not have"));
  return false;
}

void Supervisor::on_output(AgentChannel& host, control::Output message) {
  if (!speaks_for(host, message.rank, "output")) return;
  const int rank = static_cast<int>(message.rank);
  state_.wrote(message);
  auto taken = parts_.output->push(std::move(message));
  if (!taken) host.refuse("its agent sent output of " + ranks().worker_name(rank) + " " + taken.error().cause);
}

void Supervisor::on_output_end(AgentChannel& host, const control::Output& message) {
  if (!speaks_for(host, message.rank, "the end of an output")) return;
  const int rank = static_cast<int>(message.rank);
  auto ended = parts_.output->end(rank, message.stream);
  if (ended) return state_.output_ended(rank, time());
  host.refuse("its agent sent the end of an output of " + ranks().worker_name(rank) + " " + ended.error().cause);
}

void Supervisor::on_relay(AgentChannel& host, control::Type type, control::Relay message) {
  const auto relay = relays_.find(&host);
  if (relay == relays_.end()) return;
  if (type == control::Type::kRelayOpen) relay->second->open(message.connection);
  if (type == control::Type::kRelayData) relay->second->deliver(message.connection, std::move(message.bytes));
  if (type == control::Type::kRelayClose) relay->second->close(message.connection);
}

void Supervisor::on_lost(AgentChannel& host, const Error& error) {
  std::optional<Deadline> silent_since;  // a connection that ended tells when
  if (host.lost_in_silence()) silent_since = host.last_heard();
  state_.lost(index_of(host), error, silent_since, time());
  act();
}

void Supervisor::on_abort_requested(const rendezvous::Abort& abort) {
  state_.abort_requested(abort.rank, abort.why, time());
  act();
}

void Supervisor::on_complaint(int rank, const std::string& text) {
  state_.complained(rank, text);
  act();
}

void Supervisor::on_output_broken(const Error& error) {
  if (!state_.output_broken(output_status(error), time())) return;
  if (!reader_left(error)) reporter_.error(error);
  log::info("output: " + error.message());
  act();
}

void Supervisor::stop(int status, const std::string& why) {
  state_.stop(status, why, time());
  act();
}

void Supervisor::stop_now() {
  state_.stop_now(time());
  act();
}

void Supervisor::forward_signal(int number) {
  control::Signal order;
  order.number = number;
  for (AgentChannel* host : parts_.hosts) host->send(control::Type::kSignal, control::encode(order));
}

void Supervisor::act() {
  for (const auto& action : state_.take_actions()) {
    std::visit([this](const auto& one) { perform(one); }, action);
  }
  changed_.notify();
}

void Supervisor::perform(const SendStop& action) {
  parts_.hosts[action.host]->send(control::Type::kStop, control::encode(action.order));
}

void Supervisor::perform(const AbortRanks& action) {
  rendezvous::Abort abort;
  abort.rank = action.rank;
  abort.host = action.host;
  abort.pid = action.pid;
  abort.why = action.why;
  server_->abort(abort);
}

void Supervisor::perform(const StopOrdered& action) { parts_.events->stop_ordered(action.why, action.status); }

void Supervisor::perform(const StdinOver& action) {
  if (parts_.stdin_taken) parts_.stdin_taken(action.rank, kRankOver);
}

void Supervisor::perform(const Say& action) {
  if (action.is_warning) {
    reporter_.warning(action.text);
  } else {
    reporter_.note(action.text);
  }
}

void Supervisor::perform(const Log& action) {
  if (action.is_debug) {
    log::debug(action.text);
  } else {
    log::info(action.text);
  }
}

Task<void> Supervisor::wait() {
  while (!state_.over()) {
    co_await changed_.wait_until(state_.wake_at());
    changed_.reset();
    state_.time_passed(time());
    act();
    changed_.reset();
  }
  // A host that died can be the cause of the end, but its silence is not as long yet as it takes to lose a host.
  for (std::size_t i = 0; i < parts_.hosts.size(); ++i) {
    if (!state_.finished(i)) parts_.hosts[i]->lose_if_silent();
  }
  state_.conclude();
  if (const auto& failure = state_.first_failure()) {
    const JobFailure& first = failure->first.front();
    parts_.events->first_failure(first.rank, first.host, first.pid, first.what, first.status);
  }
  act();
  for (auto& [host, relay] : relays_) {
    relay->stop();
    co_await relay->join();
  }
}

}  // namespace drun::launcher
