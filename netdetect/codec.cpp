// Encodes and decodes the messages between agents and drun about interfaces and probes. The order of the fields is
// the format.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <utility>

#include "base/clean_text.h"
#include "netdetect/interface.h"
#include "netdetect/probe_target.h"

namespace drun::netdetect {
namespace {

// Minimum encoded size of an element; limits the count that a message may claim.
constexpr std::size_t kMinAddress = 4 + 4 + 1;
constexpr std::size_t kMinInterface = 4 + 4 + 4 + 4 + 1 + 4 + 4 + 8 + 4;
constexpr std::size_t kMinTarget = 4 + 4 + 2;
constexpr std::size_t kMinResult = 4 + 1 + 4 + 4 + 4;

std::uint8_t flags(std::initializer_list<bool> bits) {
  unsigned out = 0;
  unsigned place = 1;
  for (const bool bit : bits) {
    if (bit) out |= place;
    place <<= 1;
  }
  return static_cast<std::uint8_t>(out);
}

void encode(ByteWriter& out, const Address& address) {
  out.str(address.bytes);
  out.i32(address.prefix_length);
  out.u8(flags({address.link_local, address.temporary, address.deprecated}));
}

Address decode_address(ByteReader& in) {
  Address address;
  address.bytes = in.str();
  if (address.bytes.size() != 4 && address.bytes.size() != 16) address.bytes.clear();
  address.family = address.bytes.size() == 16 ? 6 : 4;
  address.prefix_length = std::clamp(in.i32(), 0, static_cast<int>(address.bytes.size()) * 8);
  const unsigned bits = in.u8();
  address.link_local = bits & 1;
  address.temporary = bits & 2;
  address.deprecated = bits & 4;
  return address;
}

}  // namespace

void encode(ByteWriter& out, const std::vector<Interface>& interfaces) {
  out.u32(static_cast<std::uint32_t>(interfaces.size()));
  for (const auto& nic : interfaces) {
    out.str(nic.name);
    out.i32(nic.index);
    out.i32(nic.mtu);
    out.i32(nic.speed_mbps);
    out.u8(flags({nic.up, nic.running, nic.loopback, nic.rdma}));
    out.str(nic.kind);
    out.str(nic.master);
    out.i64(nic.route_metric);
    out.u32(static_cast<std::uint32_t>(nic.addresses.size()));
    for (const auto& address : nic.addresses) encode(out, address);
  }
}

std::vector<Interface> decode_interfaces(ByteReader& in) {
  std::vector<Interface> interfaces;
  const std::size_t n = in.count(kMinInterface);
  for (std::size_t i = 0; i < n && in.ok(); ++i) {
    Interface nic;
    nic.name = clean_line(in.str());
    nic.index = in.i32();
    nic.mtu = in.i32();
    nic.speed_mbps = in.i32();
    const unsigned bits = in.u8();
    nic.up = bits & 1;
    nic.running = bits & 2;
    nic.loopback = bits & 4;
    nic.rdma = bits & 8;
    nic.kind = clean_line(in.str());
    nic.master = clean_line(in.str());
    nic.route_metric = in.i64();
    const std::size_t n_addresses = in.count(kMinAddress);
    for (std::size_t k = 0; k < n_addresses && in.ok(); ++k) nic.addresses.push_back(decode_address(in));
    if (in.ok()) interfaces.push_back(std::move(nic));
  }
  return interfaces;
}

void encode(ByteWriter& out, const std::vector<ProbeTarget>& targets) {
  out.u32(static_cast<std::uint32_t>(targets.size()));
  for (const auto& target : targets) {
    out.u32(target.id);
    out.str(target.address);
    out.u16(static_cast<std::uint16_t>(target.port));
  }
}

std::vector<ProbeTarget> decode_targets(ByteReader& in) {
  std::vector<ProbeTarget> targets;
  const std::size_t n = in.count(kMinTarget);
  for (std::size_t i = 0; i < n && in.ok(); ++i) {
    ProbeTarget target;
    target.id = in.u32();
    target.address = in.str();
    target.port = in.u16();
    if (in.ok()) targets.push_back(std::move(target));
  }
  return targets;
}

void encode(ByteWriter& out, const std::vector<ProbeResult>& results) {
  out.u32(static_cast<std::uint32_t>(results.size()));
  for (const auto& result : results) {
    out.u32(result.id);
    out.u8(static_cast<std::uint8_t>(result.outcome));
    out.str(result.source);
    out.u32(result.micros);
    out.str(result.detail);
  }
}

std::vector<ProbeResult> decode_results(ByteReader& in) {
  std::vector<ProbeResult> results;
  const std::size_t n = in.count(kMinResult);
  for (std::size_t i = 0; i < n && in.ok(); ++i) {
    ProbeResult result;
    result.id = in.u32();
    const std::uint8_t outcome = in.u8();
    const bool valid = outcome <= static_cast<std::uint8_t>(ProbeOutcome::kHostUnreachable);
    result.outcome = valid ? static_cast<ProbeOutcome>(outcome) : ProbeOutcome::kError;
    result.source = clean_line(in.str());
    result.micros = in.u32();
    result.detail = clean_line(in.str());
    if (in.ok()) results.push_back(std::move(result));
  }
  return results;
}

}  // namespace drun::netdetect
