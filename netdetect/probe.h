// Trying addresses. Runs in each agent: a listener that answers peers which know the token, and attempts at peers.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "base/asio.h"
#include "base/bytes.h"
#include "base/error.h"

namespace drun::netdetect {

struct ProbeTarget {
  std::uint32_t id = 0;  // chosen by the caller, returned in the result
  std::string address;   // text form
  int port = 0;
};

enum class ProbeOutcome : std::uint8_t { kReached, kRefused, kTimedOut, kUnreachable, kWrongPeer, kError };

struct ProbeResult {
  std::uint32_t id = 0;
  ProbeOutcome outcome = ProbeOutcome::kError;
  std::string source;        // our address on that connection, text form; set when reached
  std::uint32_t micros = 0;  // connect plus one round trip; set when reached
  std::string detail;        // the system's words when not reached
};

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

void encode(ByteWriter& out, const std::vector<ProbeTarget>& targets);
std::vector<ProbeTarget> decode_targets(ByteReader& in);
void encode(ByteWriter& out, const std::vector<ProbeResult>& results);
std::vector<ProbeResult> decode_results(ByteReader& in);

}  // namespace drun::netdetect
