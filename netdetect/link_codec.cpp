// Encodes and decodes the messages between agents and drun about links. The order of the fields is the format.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "base/clean_text.h"
#include "netdetect/link_target.h"

namespace drun::netdetect {
namespace {

// Minimum encoded size of an element; limits the count that a message may claim.
constexpr std::size_t kMinTarget = 4 + 4 + 2 + 4 + 4 + 4 + 1 + 4 + 4 + 4 + 1 + 1 + 8 + 2;
constexpr std::size_t kRate = 4 + 8 + 8 + 8 + 8;
constexpr std::size_t kMinResult = 4 + 4 + 4 + 3 * 8 + 2 * 4 + 2 * kRate;
constexpr double kNanosecondsPerMicrosecond = 1e3;
constexpr double kMicrosecondsPerSecond = 1e6;

std::uint64_t whole(double value) { return static_cast<std::uint64_t>(std::llround(std::clamp(value, 0.0, 1e18))); }

void encode(ByteWriter& out, const Rate& rate) {
  out.i32(rate.n_streams);
  out.u64(whole(rate.bits_per_second));
  out.u64(whole(rate.seconds * kMicrosecondsPerSecond));
  out.u64(rate.n_segments);
  out.u64(rate.n_retransmits);
}

Rate decode_rate(ByteReader& in) {
  Rate rate;
  rate.n_streams = in.i32();
  rate.bits_per_second = static_cast<double>(in.u64());
  rate.seconds = static_cast<double>(in.u64()) / kMicrosecondsPerSecond;
  rate.n_segments = in.u64();
  rate.n_retransmits = in.u64();
  return rate;
}

void encode_micros(ByteWriter& out, double us) { out.u64(whole(us * kNanosecondsPerMicrosecond)); }
double decode_micros(ByteReader& in) { return static_cast<double>(in.u64()) / kNanosecondsPerMicrosecond; }

}  // namespace

void encode(ByteWriter& out, const std::vector<LinkTarget>& targets) {
  out.u32(static_cast<std::uint32_t>(targets.size()));
  for (const auto& target : targets) {
    out.u32(target.id);
    out.str(target.address);
    out.u16(target.port);
    out.str(target.source);
    out.u32(target.n_round_trips);
    out.u32(target.round_trips_ms);
    out.boolean(target.path_mtu);
    out.u32(target.n_streams);
    out.u32(target.time_ms);
    out.u32(target.begin_in_ms);
    out.boolean(target.sends);
    out.boolean(target.receives);
    out.u64(target.max_rate);
    out.u16(target.segment_bytes);
  }
}

std::vector<LinkTarget> decode_link_targets(ByteReader& in) {
  std::vector<LinkTarget> targets;
  const std::size_t n = in.count(kMinTarget);
  for (std::size_t i = 0; i < n && in.ok(); ++i) {
    LinkTarget target;
    target.id = in.u32();
    target.address = in.str();
    target.port = in.u16();
    target.source = in.str();
    target.n_round_trips = in.u32();
    target.round_trips_ms = in.u32();
    target.path_mtu = in.boolean();
    target.n_streams = in.u32();
    target.time_ms = in.u32();
    target.begin_in_ms = in.u32();
    target.sends = in.boolean();
    target.receives = in.boolean();
    target.max_rate = in.u64();
    target.segment_bytes = in.u16();
    if (in.ok()) targets.push_back(std::move(target));
  }
  return targets;
}

void encode(ByteWriter& out, const std::vector<LinkResult>& results) {
  out.u32(static_cast<std::uint32_t>(results.size()));
  for (const auto& result : results) {
    out.u32(result.id);
    out.str(result.error);
    out.u32(result.n_round_trips);
    encode_micros(out, result.rtt_median_us);
    encode_micros(out, result.rtt_p99_us);
    encode_micros(out, result.rtt_min_us);
    out.i32(result.mtu_forward);
    out.i32(result.mtu_backward);
    encode(out, result.forward);
    encode(out, result.backward);
  }
}

std::vector<LinkResult> decode_link_results(ByteReader& in) {
  std::vector<LinkResult> results;
  const std::size_t n = in.count(kMinResult);
  for (std::size_t i = 0; i < n && in.ok(); ++i) {
    LinkResult result;
    result.id = in.u32();
    result.error = clean_line(in.str());
    result.n_round_trips = in.u32();
    result.rtt_median_us = decode_micros(in);
    result.rtt_p99_us = decode_micros(in);
    result.rtt_min_us = decode_micros(in);
    result.mtu_forward = in.i32();
    result.mtu_backward = in.i32();
    result.forward = decode_rate(in);
    result.backward = decode_rate(in);
    if (in.ok()) results.push_back(std::move(result));
  }
  return results;
}

}  // namespace drun::netdetect
