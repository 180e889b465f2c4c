#include "bench/pattern.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "bench/element.h"
#include "bench/settings.h"

namespace drun::bench {

namespace {

constexpr std::uint64_t kLargest = 7;  // max magnitude of a rank's input

}  // namespace

std::vector<Part> expected_parts(const Call& call) {
  const Counts& n = call.counts;
  const auto rank = static_cast<std::size_t>(call.rank);
  const bool is_root = call.rank == call.root;
  switch (call.kind) {
    case Kind::kAllReduce:
      return {{0, n.recv, kReduced, 0}};
    case Kind::kReduce:
      if (!is_root) return {};
      return {{0, n.recv, kReduced, 0}};
    case Kind::kReduceScatter:
      return {{0, n.recv, kReduced, rank * n.call}};
    case Kind::kBroadcast:
      return {{0, n.recv, call.root, 0}};
    case Kind::kScatter:
      return {{0, n.recv, call.root, rank * n.call}};
    case Kind::kSendRecv:
      return {{0, n.recv, (call.rank + call.n_ranks - 1) % call.n_ranks, 0}};
    case Kind::kBarrier:
      return {};
    case Kind::kGather:
      if (!is_root) return {};
      break;
    case Kind::kAllGather:
    case Kind::kAlltoall:
      break;
  }
  std::vector<Part> out;
  for (int from = 0; from < call.n_ranks; ++from) {
    const std::size_t first = call.kind == Kind::kAlltoall ? rank * n.call : 0;
    out.push_back({static_cast<std::size_t>(from) * n.call, n.call, from, first});
  }
  return out;
}

Pattern::Pattern(const Call& call, std::uint64_t round) : call_(call), round_(round) {}

// The mixing of splitmix64: every input bit affects about half of the output bits.
std::uint64_t Pattern::hash(std::uint64_t a, std::uint64_t b) const {
  std::uint64_t x = (round_ * 0x9e3779b97f4a7c15u) ^ (a * 0xd1342543de82ef95u) ^ (b + 0x2545f4914f6cdd1du);
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

double Pattern::given(int rank, std::size_t i) const {
  i %= kPeriod;
  const std::uint64_t h = hash(static_cast<std::uint64_t>(rank) + 1, i);
  const bool negative = !is_unsigned(call_.dtype) && (h >> 32 & 1) != 0;
  std::uint64_t magnitude = h % (kLargest + 1);
  if (info(call_.kind).reduces && call_.op == DRUN_PROD) {
    // At most two factors of each product are not 1 or -1, so that it fits all types.
    const std::uint64_t chosen = hash(0, i), n = static_cast<std::uint64_t>(call_.n_ranks);
    const auto own = static_cast<std::uint64_t>(rank);
    magnitude = own == chosen % n || own == (chosen >> 32) % n ? 1 + magnitude : 1;
  }
  return negative ? -static_cast<double>(magnitude) : static_cast<double>(magnitude);
}

double Pattern::reduced(std::size_t i) const {
  double out = given(0, i);
  for (int rank = 1; rank < call_.n_ranks; ++rank) {
    const double value = given(rank, i);
    if (call_.op == DRUN_PROD) {
      out *= value;
    } else if (call_.op == DRUN_MIN) {
      out = std::min(out, value);
    } else if (call_.op == DRUN_MAX) {
      out = std::max(out, value);
    } else {
      out += value;
    }
  }
  if (is_integer(call_.dtype)) out = wrapped(out, call_.dtype);
  if (call_.op == DRUN_AVG) {
    out /= call_.n_ranks;
    if (is_integer(call_.dtype)) out = std::trunc(out);
  }
  return out;
}

std::vector<char> Pattern::encoded(int from) const {
  const std::size_t size = element_size(call_.dtype);
  std::vector<char> out(kPeriod * size);
  for (std::size_t i = 0; i < kPeriod; ++i) {
    encode(from == kReduced ? reduced(i) : given(from, i), call_.dtype, out.data() + i * size);
  }
  return out;
}

void Pattern::fill(void* into) const {
  const std::vector<char> period = encoded(call_.rank);
  const std::size_t n_bytes = call_.counts.send * element_size(call_.dtype);
  for (std::size_t at = 0; at < n_bytes; at += period.size()) {
    std::memcpy(static_cast<char*>(into) + at, period.data(), std::min(period.size(), n_bytes - at));
  }
}

std::uint64_t Pattern::count_wrong(const void* received) const {
  const std::size_t size = element_size(call_.dtype);
  const double share = tolerance(call_.dtype);
  std::uint64_t wrong = 0;
  std::vector<char> period;
  for (const Part& part : expected_parts(call_)) {
    if (period.empty() || part.from != kReduced) period = encoded(part.from);
    for (std::size_t i = 0; i < part.count;) {
      const std::size_t phase = (part.first + i) % kPeriod;
      const std::size_t n = std::min(kPeriod - phase, part.count - i);
      const char* got = static_cast<const char*>(received) + (part.at + i) * size;
      const char* want = period.data() + phase * size;
      i += n;
      if (std::memcmp(got, want, n * size) == 0) continue;
      for (std::size_t k = 0; k < n; ++k) {
        const double value = part.from == kReduced ? reduced(phase + k) : given(part.from, phase + k);
        const double error = std::fabs(decode(got + k * size, call_.dtype) - value);
        if (!(error <= share * std::fabs(value))) ++wrong;  // also NaN
      }
    }
  }
  return wrong;
}

}  // namespace drun::bench
