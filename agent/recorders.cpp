#include "agent/recorders.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>

#include "base/clock.h"
#include "base/memory_file.h"

namespace drun::agent {

namespace {

constexpr std::size_t kMaxNameless = 1024;
constexpr std::size_t kMaxPerRank = 8;  // drun_inits whose calls new_calls_of() has not returned yet
constexpr std::uint32_t kHighestRank = 1u << 20;

// Clamps a time from shared memory, which may hold anything, to a range that is safe to calculate with.
std::uint64_t sane(std::int64_t ns) {
  return static_cast<std::uint64_t>(std::clamp<std::int64_t>(ns, 0, std::int64_t{1} << 61));
}

control::RecordedCall as_message(const recorder::Call& call) {
  control::RecordedCall m;
  m.comm = call.comm;
  m.group = call.group;
  m.seq = call.seq;
  m.kind = call.kind;
  m.dtype = call.dtype;
  m.op = call.op;
  m.status = call.status;
  m.root = call.root;
  m.count = call.count;
  m.queued_us = call.queued_us;
  m.started_ns = sane(call.started_ns);
  m.ended_ns = sane(call.ended_ns);
  m.name = recorder::name_of(call);
  return m;
}

}  // namespace

Recorders::Memory::~Memory() { ::munmap(place_, n_bytes_); }

Fd Recorders::make() {
  auto made = make_memory_file("drun-recorder");
  if (!made) return Fd();
  Fd memory = std::move(*made);
  const std::size_t n_bytes = recorder::bytes_for(n_entries_);
  if (::ftruncate(memory.get(), static_cast<off_t>(n_bytes)) != 0) return Fd();
  // Reading past the end of a file that its other owner has truncated would kill the agent.
  if (::fcntl(memory.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) return Fd();
  void* place = ::mmap(nullptr, n_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, memory.get(), 0);
  if (place == MAP_FAILED) return Fd();
  auto* header = static_cast<recorder::Header*>(place);
  header->entry_bytes = sizeof(recorder::Entry);
  header->n_entries = n_entries_;
  header->rank = -1;
  header->magic = recorder::kMagic;
  nameless_.emplace_back(place, n_entries_);
  if (nameless_.size() > kMaxNameless) nameless_.pop_front();
  return memory;
}

Recorders::Recorder* Recorders::of(std::uint32_t rank) {
  for (auto next = nameless_.begin(); next != nameless_.end();) {
    const auto here = next++;
    const int owner = here->reader.rank();
    if (owner < 0 || owner > static_cast<int>(kHighestRank)) continue;
    auto& list = by_rank_[static_cast<std::uint32_t>(owner)];
    list.splice(list.end(), nameless_, here);
    if (list.size() > kMaxPerRank) list.pop_front();
  }
  const auto found = by_rank_.find(rank);
  return found == by_rank_.end() ? nullptr : &found->second.back();
}

std::optional<control::RankActivity> Recorders::activity_of(std::uint32_t rank) {
  const Recorder* recorder = of(rank);
  if (recorder == nullptr) return std::nullopt;
  const auto standing = recorder->reader.standing();
  control::RankActivity m;
  m.rank = rank;
  m.n_begun = standing.n_begun;
  m.world_seq = standing.world_seq;
  m.time_ns = static_cast<std::uint64_t>(monotonic_ns());
  if (standing.open) m.open.push_back(as_message(*standing.open));
  if (standing.last) m.last.push_back(as_message(*standing.last));
  return m;
}

control::Timeline Recorders::new_calls_of(std::uint32_t rank, std::size_t most, bool all) {
  control::Timeline m;
  m.rank = rank;
  if (of(rank) == nullptr) return m;
  auto& list = by_rank_[rank];
  for (auto here = list.begin(); here != list.end() && m.calls.size() < most;) {
    const bool is_latest = std::next(here) == list.end();
    const std::uint64_t n_begun = here->reader.n_begun();
    while (here->told < n_begun && m.calls.size() < most) {
      if (n_begun - here->told > here->n_entries) {
        m.n_lost += n_begun - here->told - here->n_entries;
        here->told = n_begun - here->n_entries;
      }
      const auto call = here->reader.call(here->told + 1);
      const bool final = all || !is_latest;
      if (!call && !final && here->reader.n_begun() - here->told <= here->n_entries) break;  // it is being written
      if (call && call->ended_ns == 0 && !final) break;
      ++here->told;
      if (call) {
        m.calls.push_back(as_message(*call));
      } else {
        ++m.n_lost;
      }
    }
    if (is_latest || here->told < here->reader.n_begun()) break;
    here = list.erase(here);  // of an earlier drun_init
  }
  return m;
}

}  // namespace drun::agent
