// Trying addresses. Runs in each agent: a listener that answers peers which know the token, and attempts at peers.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "base/asio.h"
#include "base/error.h"
#include "netdetect/probe_target.h"

namespace drun::netdetect {

// Listens on a free port of every address (one IPv6 dual-stack socket, or IPv4 where there is no IPv6). A peer sends a
// nonce and a proof that it knows the 16-byte token, and gets a proof back (proof.h); anything else is closed,
// unanswered. Bounded: at most 256 open connections, of which the oldest makes room, 3 s each. Destroy it after stop()
// and join().
class ProbeListener {
 public:
  static Result<std::unique_ptr<ProbeListener>> start(const asio::any_io_executor& executor, std::string token);
  virtual ~ProbeListener() = default;
  virtual int port() const = 0;
  virtual void stop() = 0;
  virtual Task<void> join() = 0;
};

// Tries all targets, at most `parallel` at a time, each for at most `timeout` (SYN retransmits included). `token` is
// the job's: every agent of a job has the same one; it never travels. Proofs bind it to side, nonce and the listener's
// port, so that an unrelated service that echoes is not taken for a peer. Results are in the order of `targets`.
Task<std::vector<ProbeResult>> probe_all(std::vector<ProbeTarget> targets, std::string token,
                                         std::chrono::milliseconds timeout, int parallel);

}  // namespace drun::netdetect
