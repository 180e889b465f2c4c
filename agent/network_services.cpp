#include "agent/network_services.h"

#include <string>
#include <utility>

namespace drun::agent {

using control::Type;

namespace {
constexpr std::size_t kMaxLinkListeners = 4;  // a check and a job's own measurement, and some to spare
}

NetworkServices::NetworkServices(const asio::any_io_executor& executor, control::FrameQueue& to_drun)
    : executor_(executor), to_drun_(to_drun), tasks_(executor) {}

void NetworkServices::listen_for_probes(const control::ProbeListen& message) {
  if (is_ending_) return;
  control::Port reply;
  auto listener = netdetect::ProbeListener::start(executor_, message.token);
  if (listener) {
    stop_probes();  // those of an earlier probe had another token
    reply.port = static_cast<std::uint16_t>((*listener)->port());
    probe_listeners_.push_back(std::move(*listener));
  } else {
    reply.error = listener.error().message();
  }
  to_drun_.push(Type::kProbeListening, control::encode(reply));
}

void NetworkServices::run_probes(control::ProbeRun message) { tasks_.spawn(probe(std::move(message))); }

Task<void> NetworkServices::probe(control::ProbeRun message) {
  const std::chrono::milliseconds timeout(message.timeout_ms);
  control::ProbeResults reply;
  reply.results = co_await netdetect::probe_all(std::move(message.targets), std::move(message.token), timeout,
                                                static_cast<int>(message.parallel));
  to_drun_.push(Type::kProbeResults, control::encode(reply));
}

void NetworkServices::listen_for_links(const control::LinkListen& message) {
  control::Port reply;
  if (link_listeners_.size() >= kMaxLinkListeners || is_ending_) {
    reply.error = "it listens for other link measurements already, or ends";
  } else if (auto listener = netdetect::LinkListener::start(executor_, message.token)) {
    reply.port = static_cast<std::uint16_t>((*listener)->port());
    link_listeners_.push_back(std::move(*listener));
  } else {
    reply.error = listener.error().message();
  }
  to_drun_.push(Type::kLinkListening, control::encode(reply));
}

void NetworkServices::run_links(control::LinkRun message) { tasks_.spawn(measure(std::move(message))); }

Task<void> NetworkServices::measure(control::LinkRun message) {
  control::LinkResults reply;
  reply.results =
      co_await netdetect::measure_links(std::move(message.targets), std::move(message.token), links_stopping_);
  to_drun_.push(Type::kLinkResults, control::encode(reply));
}

void NetworkServices::listen_for_relay(const control::RelayListen& message) {
  const auto emit = [this](Type type, std::uint32_t connection, std::string bytes) {
    control::Relay m;
    m.connection = connection;
    m.bytes = std::move(bytes);
    to_drun_.push(type, control::encode(m));
  };
  rendezvous::RelayOutput output;
  output.open = [emit](std::uint32_t c) { emit(Type::kRelayOpen, c, {}); };
  output.data = [emit](std::uint32_t c, std::string bytes) { emit(Type::kRelayData, c, std::move(bytes)); };
  output.close = [emit](std::uint32_t c) { emit(Type::kRelayClose, c, {}); };
  control::Port reply;
  auto& place = message.for_horovod ? horovod_relay_ : relay_;
  if (place) {
    reply.error = "it listens for this relay already";
  } else if (auto relay = rendezvous::RelayListener::start(executor_, std::move(output),
                                                           message.for_horovod ? rendezvous::kFirstHorovodRelay : 1)) {
    place = std::move(*relay);
    reply.address = place->address();
    reply.port = static_cast<std::uint16_t>(place->port());
  } else {
    reply.error = relay.error().message();
  }
  to_drun_.push(Type::kRelayListening, control::encode(reply));
}

// nullptr: drun has not asked for it.
rendezvous::RelayListener* NetworkServices::relay_of(std::uint32_t connection) const {
  return (connection >= rendezvous::kFirstHorovodRelay ? horovod_relay_ : relay_).get();
}

void NetworkServices::relay_data(control::Relay message) {
  if (auto* relay = relay_of(message.connection)) relay->deliver(message.connection, std::move(message.bytes));
}

void NetworkServices::close_relayed(const control::Relay& message) {
  if (auto* relay = relay_of(message.connection)) relay->close(message.connection);
}

void NetworkServices::stop_probes() {
  for (const auto& listener : probe_listeners_) listener->stop();
}

void NetworkServices::stop_links() {
  for (const auto& listener : link_listeners_) listener->stop();
  links_stopping_->stop();
}

void NetworkServices::stop_measuring() {
  stop_probes();
  stop_links();
}

void NetworkServices::end() {
  is_ending_ = true;
  stop_links();
}

void NetworkServices::stop() {
  for (const auto* relay : {&relay_, &horovod_relay_}) {
    if (*relay) (*relay)->stop();
  }
  stop_measuring();
}

Task<void> NetworkServices::join() {
  if (relay_) co_await relay_->join();
  if (horovod_relay_) co_await horovod_relay_->join();
  for (const auto& listener : probe_listeners_) co_await listener->join();
  for (const auto& listener : link_listeners_) co_await listener->join();
  co_await tasks_.join();
}

}  // namespace drun::agent
