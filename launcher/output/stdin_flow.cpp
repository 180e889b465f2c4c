#include "launcher/output/stdin_flow.h"

#include <algorithm>
#include <utility>

namespace drun::launcher {

StdinFlow::StdinFlow(const std::vector<int>& readers, std::size_t window) : window_(window) {
  for (const int rank : readers) readers_[rank];
}

bool StdinFlow::gets(int rank) const {
  const auto found = readers_.find(rank);
  return found != readers_.end() && counts(found->second);
}

void StdinFlow::sent(std::size_t n_bytes, Time now) {
  sent_ += n_bytes;
  for (auto& [rank, reader] : readers_) {
    if (!counts(reader)) continue;
    if (reader.taken == reader.sent) reader.since = now;
    reader.sent = sent_;
  }
}

std::size_t StdinFlow::taken(int rank, std::size_t n_bytes, Time now) {
  const auto found = readers_.find(rank);
  if (found == readers_.end()) return 0;
  Reader& reader = found->second;
  reader.taken += n_bytes;
  reader.has_begun = reader.has_begun || n_bytes == 0 || reader.taken > kPipe;
  reader.since = now;
  if (reader.taken == sent_) reader.is_left_behind = false;  // it was only late, and has missed nothing
  return take_credit();
}

std::size_t StdinFlow::over(int rank) {
  const auto found = readers_.find(rank);
  if (found == readers_.end()) return 0;
  found->second.is_over = true;
  return take_credit();
}

std::size_t StdinFlow::take_credit() {
  bool has_reader = false;
  std::uint64_t least = sent_;
  for (const auto& [rank, reader] : readers_) {
    if (!counts(reader)) continue;
    has_reader = true;
    least = std::min(least, reader.taken);
  }
  if (!has_reader || least <= granted_) return 0;
  return static_cast<std::size_t>(least - std::exchange(granted_, least));
}

std::vector<StdinFlow::Stalled> StdinFlow::stalled(Time now, std::chrono::milliseconds limit) {
  std::vector<Stalled> out;
  const bool others_wait = std::any_of(readers_.begin(), readers_.end(), [&](const auto& entry) {
    return counts(entry.second) && entry.second.taken == sent_;
  });
  if (!others_wait || sent_ - granted_ < window_) return out;
  for (auto& [rank, reader] : readers_) {
    if (!counts(reader) || reader.is_told || reader.taken == sent_ || now - reader.since < limit) continue;
    reader.is_told = true;
    reader.is_left_behind = !reader.has_begun;
    out.push_back(Stalled{rank, reader.is_left_behind});
  }
  return out;
}

bool StdinFlow::gets_end(int rank) const {
  const auto found = readers_.find(rank);
  return found != readers_.end() && !found->second.is_over && found->second.sent == sent_;
}

bool StdinFlow::has_reached_gap(int rank) const {
  const auto found = readers_.find(rank);
  if (found == readers_.end()) return false;
  const Reader& reader = found->second;
  return reader.is_left_behind && !reader.is_over && reader.sent < sent_ && reader.taken == reader.sent;
}

}  // namespace drun::launcher
