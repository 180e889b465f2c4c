#include "bench/pattern.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "bench/element.h"
#include "bench/settings.h"

namespace drun::bench {

namespace {

constexpr std::uint64_t kLargest = 7;        // max magnitude of a rank's input
constexpr std::uint64_t kLeastAveraged = 4;  // min magnitude in averages of floating-point numbers

// Relative error after n roundings, each of a relative error of `u` at most: (1 + u)^n - 1 (Higham, "Accuracy and
// Stability of Numerical Algorithms", chapter 3). log1p and expm1 keep the digits that 1 + u loses.
double compounded(double u, double n) { return std::expm1(n * std::log1p(u)); }

// Returns how many ranks may contribute to one element of a sum or an average.
//
// Sums: every partial sum is a whole number up to n * kLargest. If that is 1/u at most, no addition is rounded.
//
// Averages: tolerance() is about u * n^2 * kLargest / n_ranks. A result without one rank, or with one twice, has as
// large an error itself. Both together must be less than the least input, kLeastAveraged / n_ranks, which holds if
// u * n^2 is less than 2/7; 0.15 leaves room for the lower terms, which matter for few contributors.
std::size_t max_contributors(drun_op op, double u) {
  return static_cast<std::size_t>(op == DRUN_AVG ? std::sqrt(0.15 / u) : 1 / (u * double{kLargest}));
}

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

Pattern::Pattern(const Call& call, std::uint64_t round)
    : call_(call),
      round_(round),
      adds_floats_(info(call.kind).reduces && (call.op == DRUN_SUM || call.op == DRUN_AVG) && !is_integer(call.dtype)),
      n_contributors_(static_cast<std::size_t>(call.n_ranks)) {
  if (!adds_floats_) return;
  first_ = hash(0, 0) % n_contributors_;
  n_contributors_ = std::min(n_contributors_, max_contributors(call.op, unit_roundoff(call.dtype)));
}

// The mixing of splitmix64: every input bit affects about half of the output bits.
std::uint64_t Pattern::hash(std::uint64_t a, std::uint64_t b) const {
  std::uint64_t x = (round_ * 0x9e3779b97f4a7c15u) ^ (a * 0xd1342543de82ef95u) ^ (b + 0x2545f4914f6cdd1du);
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

// The contributors to an element are consecutive ranks, modulo the number of ranks. Those to the next element follow
// them, so that a few elements have a contribution of every rank.
int Pattern::contributor(std::size_t k, std::size_t i) const {
  const auto n = static_cast<std::size_t>(call_.n_ranks);
  return static_cast<int>((first_ + i % kPeriod * n_contributors_ + k) % n);
}

bool Pattern::contributes(int rank, std::size_t i) const {
  const int distance = rank - contributor(0, i);
  return static_cast<std::size_t>(distance < 0 ? distance + call_.n_ranks : distance) < n_contributors_;
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
  } else if (adds_floats_) {
    if (!contributes(rank, i)) return 0;
    if (call_.op == DRUN_AVG) magnitude = kLeastAveraged + h % (kLargest + 1 - kLeastAveraged);
  }
  return negative ? -static_cast<double>(magnitude) : static_cast<double>(magnitude);
}

double Pattern::reduced(std::size_t i) const {
  double out = given(contributor(0, i), i);
  for (std::size_t k = 1; k < n_contributors_; ++k) {
    const double value = given(contributor(k, i), i);
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

// libdrun divides the exact sum, which is one rounding, or two for halves. NCCL rounds 1/n to the type of the elements,
// multiplies each rank's input by it, and adds the products along a ring or a tree, all in that type or a wider one
// (ncclAvg is a ncclDevPreMulSum there; NVIDIA/nccl, src/enqueue.cc). In any order, n contributors take n - 1
// additions; adding 0 is exact. So each contribution is rounded n + 1 times at most, and the computed average is that
// of contributions that are wrong by this relative error. One more rounding is that of reduced(). 1/n is a normal
// number of every type for up to 16,384 ranks.
//
// nccl-tests compares bits instead, with a tolerance that was fitted to many random sums (verifiable/verifiable.cu). A
// bound that always holds is tight enough here, because few ranks contribute.
double Pattern::tolerance(std::size_t i) const {
  if (!adds_floats_ || call_.op != DRUN_AVG) return 0;
  double magnitudes = 0;
  for (std::size_t k = 0; k < n_contributors_; ++k) magnitudes += std::fabs(given(contributor(k, i), i));
  const double n_roundings = static_cast<double>(n_contributors_) + 2;
  return compounded(unit_roundoff(call_.dtype), n_roundings) * magnitudes / call_.n_ranks;
}

std::vector<double> Pattern::values(int from) const {
  std::vector<double> out(kPeriod);
  for (std::size_t i = 0; i < kPeriod; ++i) out[i] = from == kReduced ? reduced(i) : given(from, i);
  return out;
}

std::vector<char> Pattern::encoded(const std::vector<double>& values) const {
  const std::size_t size = element_size(call_.dtype);
  std::vector<char> out(values.size() * size);
  for (std::size_t i = 0; i < values.size(); ++i) encode(values[i], call_.dtype, out.data() + i * size);
  return out;
}

void Pattern::fill(void* into) const {
  const std::vector<char> period = encoded(values(call_.rank));
  const std::size_t n_bytes = call_.counts.send * element_size(call_.dtype);
  for (std::size_t at = 0; at < n_bytes; at += period.size()) {
    std::memcpy(static_cast<char*>(into) + at, period.data(), std::min(period.size(), n_bytes - at));
  }
}

std::uint64_t Pattern::count_wrong(const void* received) const {
  const std::size_t size = element_size(call_.dtype);
  std::uint64_t wrong = 0;
  std::vector<double> expected, tolerances(kPeriod, 0);
  std::vector<char> period;
  for (const Part& part : expected_parts(call_)) {
    expected = values(part.from);
    period = encoded(expected);
    for (std::size_t i = 0; part.from == kReduced && i < kPeriod; ++i) tolerances[i] = tolerance(i);
    for (std::size_t i = 0; i < part.count;) {
      const std::size_t phase = (part.first + i) % kPeriod;
      const std::size_t n = std::min(kPeriod - phase, part.count - i);
      const char* got = static_cast<const char*>(received) + (part.at + i) * size;
      i += n;
      if (std::memcmp(got, period.data() + phase * size, n * size) == 0) continue;
      for (std::size_t k = 0; k < n; ++k) {
        const double error = std::fabs(decode(got + k * size, call_.dtype) - expected[phase + k]);
        if (!(error <= tolerances[phase + k])) ++wrong;  // also NaN
      }
    }
  }
  return wrong;
}

}  // namespace drun::bench
