// Probes addresses. Each agent runs a listener, which answers peers that know the token, and tries its peers.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "base/asio.h"
#include "base/error.h"
#include "netdetect/probe_target.h"

namespace drun::netdetect {

// Listens on a free port of every address (one IPv6 dual-stack socket, or IPv4 where there is no IPv6). A peer sends
// a nonce and a proof that it knows the 16-byte token, and gets a proof back (proof.h); any other connection is
// closed without an answer. Bounded: at most 256 open connections, of which the oldest is closed to make room, 3 s
// each. Must not be destroyed before stop() and join().
class ProbeListener {
 public:
  static Result<std::unique_ptr<ProbeListener>> start(const asio::any_io_executor& executor, std::string token);
  virtual ~ProbeListener() = default;
  virtual int port() const = 0;
  virtual void stop() = 0;
  virtual Task<void> join() = 0;
};

// Tries all targets, at most `parallel` at a time, each for at most `timeout` (SYN retransmits included). All agents
// of a job have the same `token`, which is never sent to a peer. Proofs bind it to side, nonce and the listener's
// port, so that an unrelated service that echoes is not taken for a peer. Results are in the order of `targets`.
Task<std::vector<ProbeResult>> probe_all(std::vector<ProbeTarget> targets, std::string token,
                                         std::chrono::milliseconds timeout, int parallel);

}  // namespace drun::netdetect
