#include "recorder/reader.h"

#include <algorithm>
#include <cstring>

#include "base/clean_text.h"

namespace drun::recorder {

Reader::Reader(const void* memory, std::uint32_t n_entries)
    : header_(static_cast<const Header*>(memory)),
      entries_(reinterpret_cast<const Entry*>(header_ + 1)),
      n_entries_(n_entries) {}

int Reader::rank() const { return header_->rank.load(std::memory_order_acquire); }
std::uint64_t Reader::n_begun() const { return header_->n_begun.load(std::memory_order_acquire); }

std::optional<Call> Reader::call(std::uint64_t number) const {
  if (number == 0) return std::nullopt;
  const Entry& entry = entries_[(number - 1) % n_entries_];
  const std::uint64_t before = entry.sequence.load(std::memory_order_acquire);
  if (before % 2 != 0) return std::nullopt;
  std::uint64_t words[kCallWords];
  for (std::size_t i = 0; i < kCallWords; ++i) words[i] = entry.words[i].load(std::memory_order_acquire);
  if (entry.sequence.load(std::memory_order_relaxed) != before) return std::nullopt;
  Call call;
  std::memcpy(&call, words, sizeof call);
  if (call.number != number) return std::nullopt;
  call.name[kNameBytes - 1] = '\0';
  // The name is printed on terminals. The clean text is no longer.
  const std::string name = clean_line(call.name);
  std::memcpy(call.name, name.c_str(), name.size() + 1);
  return call;
}

Standing Reader::standing() const {
  Standing out;
  out.n_begun = n_begun();
  out.world_seq = header_->world_seq.load(std::memory_order_acquire);
  const auto n_looked_at = std::min<std::uint64_t>(std::min(n_entries_, kEntries), out.n_begun);
  for (std::uint64_t i = 0; i < n_looked_at; ++i) {
    auto here = call(out.n_begun - i);
    if (!here) continue;
    if (here->ended_ns == 0) {
      out.open = here;
    } else if (!out.last) {
      out.last = here;
    }
  }
  return out;
}

std::string name_of(const Call& call) { return std::string(call.name, ::strnlen(call.name, kNameBytes)); }

}  // namespace drun::recorder
