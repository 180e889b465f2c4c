// The services of the agent in the network of its host: it answers probes and link measurements of other agents,
// makes its own, and listens for workers whose rendezvous is relayed. Owned by the agent; runs on its thread.
//
// States: open -> ending (no new listeners for measurements; the relay goes on) -> stopped.
#pragma once

#include <memory>
#include <vector>

#include "base/asio.h"
#include "control/frame_queue.h"
#include "control/messages.h"
#include "netdetect/link_measure.h"
#include "netdetect/probe.h"
#include "rendezvous/relay.h"

namespace drun::agent {

class NetworkServices {
 public:
  NetworkServices(const asio::any_io_executor& executor, control::FrameQueue& to_drun);

  // The orders of drun. Each function replies to its own.
  void listen_for_probes(const control::ProbeListen& message);
  void run_probes(control::ProbeRun message);
  void listen_for_links(const control::LinkListen& message);
  void run_links(control::LinkRun message);
  void listen_for_relay(const control::RelayListen& message);
  void relay_data(control::Relay message);
  void close_relayed(const control::Relay& message);

  // Stops listeners and running link measurements: the workers are about to start.
  void stop_measuring();
  // The job ends: stops link measurements, and refuses to listen for probes and links from now on.
  void end();
  void stop();
  Task<void> join();

 private:
  Task<void> probe(control::ProbeRun message);
  Task<void> measure(control::LinkRun message);
  void stop_probes();
  void stop_links();
  rendezvous::RelayListener* relay_of(std::uint32_t connection) const;

  asio::any_io_executor executor_;
  control::FrameQueue& to_drun_;
  TaskGroup tasks_;
  std::vector<std::unique_ptr<netdetect::ProbeListener>> probe_listeners_;  // one per probe; only the last one listens
  std::vector<std::unique_ptr<netdetect::LinkListener>> link_listeners_;
  std::shared_ptr<netdetect::Stopping> links_stopping_ = std::make_shared<netdetect::Stopping>();
  std::unique_ptr<rendezvous::RelayListener> relay_, horovod_relay_;
  bool is_ending_ = false;
};

}  // namespace drun::agent
