// Addresses that drun asks an agent to try, and the outcomes. Carried by the control channel; contains no Asio.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/bytes.h"

namespace drun::netdetect {

struct ProbeTarget {
  std::uint32_t id = 0;  // chosen by the caller, returned in the result
  std::string address;   // text form
  int port = 0;
};

enum class ProbeOutcome : std::uint8_t {
  kReached,
  kRefused,
  kTimedOut,
  kUnreachable,  // no route, or one that a local rule forbids
  kWrongPeer,
  kError,
  kHostUnreachable,  // a firewall rejects (firewalld does it so), or nothing answers at the address
};

struct ProbeResult {
  std::uint32_t id = 0;
  ProbeOutcome outcome = ProbeOutcome::kError;
  std::string source;        // our address on that connection, text form; set when reached
  std::uint32_t micros = 0;  // connect plus one round trip; set when reached
  std::string detail;        // the system's error text when not reached
};

void encode(ByteWriter& out, const std::vector<ProbeTarget>& targets);
std::vector<ProbeTarget> decode_targets(ByteReader& in);
void encode(ByteWriter& out, const std::vector<ProbeResult>& results);
std::vector<ProbeResult> decode_results(ByteReader& in);

}  // namespace drun::netdetect
