#include "runtime/src/recorder.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "base/clock.h"

namespace drun::runtime {

namespace {

using recorder::Call;
using recorder::Entry;
using recorder::Header;
using recorder::kCallWords;

constexpr std::uint32_t kMostEntries = 1u << 20;

// While this lives readers take the entry for torn. Words are stored with release, so that none is seen before the odd
// sequence; a fence would do it too, but TSan knows none.
class Writing {
 public:
  explicit Writing(Entry& entry) : entry_(entry), odd_(entry.sequence.load(std::memory_order_relaxed) | 1) {
    entry_.sequence.store(odd_, std::memory_order_relaxed);
  }
  ~Writing() { entry_.sequence.store(odd_ + 1, std::memory_order_release); }
  Writing(const Writing&) = delete;
  Writing& operator=(const Writing&) = delete;

 private:
  Entry& entry_;
  const std::uint64_t odd_;
};

}  // namespace

std::shared_ptr<Recorder> Recorder::open(const Fd& memory, int rank) {
  struct stat about {};
  if (!memory || ::fstat(memory.get(), &about) != 0) return nullptr;
  const auto n_bytes = static_cast<std::size_t>(about.st_size);
  if (n_bytes < sizeof(Header)) return nullptr;
  void* place = ::mmap(nullptr, n_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, memory.get(), 0);
  if (place == MAP_FAILED) return nullptr;
  auto* header = static_cast<Header*>(place);
  const std::uint32_t n_entries = header->n_entries;
  const bool known = header->magic == recorder::kMagic && header->entry_bytes == sizeof(Entry) && n_entries > 0 &&
                     n_entries <= kMostEntries && recorder::bytes_for(n_entries) <= n_bytes;
  if (!known) {
    ::munmap(place, n_bytes);
    return nullptr;
  }
  header->pid = ::getpid();
  header->rank.store(rank, std::memory_order_release);
  return std::shared_ptr<Recorder>(new Recorder(place, n_bytes, n_entries));
}

Recorder::Recorder(void* memory, std::size_t n_bytes, std::uint32_t n_entries)
    : header_(static_cast<Header*>(memory)),
      entries_(reinterpret_cast<Entry*>(header_ + 1)),
      n_bytes_(n_bytes),
      n_entries_(n_entries) {}

Recorder::~Recorder() { ::munmap(header_, n_bytes_); }

std::uint64_t Recorder::begin(const Operation& operation, int group, int root, std::chrono::nanoseconds queued) {
  Call call;
  call.number = header_->n_begun.fetch_add(1, std::memory_order_relaxed) + 1;
  call.seq = operation.seq;
  call.count = operation.count;
  // The call's own clock reading, where it has one: another would cost as much as the rest of this.
  const auto started = operation.deadline - operation.timeout;
  const bool has_started = operation.deadline != Clock::time_point{};
  call.started_ns = has_started ? std::chrono::nanoseconds(started.time_since_epoch()).count() : monotonic_ns();
  call.comm = operation.comm;
  call.group = static_cast<std::uint32_t>(group);
  call.root = root;
  const auto queued_us = std::chrono::duration_cast<std::chrono::microseconds>(queued).count();
  call.queued_us = static_cast<std::uint32_t>(std::clamp<std::int64_t>(queued_us, 0, UINT32_MAX));
  call.kind = static_cast<std::uint8_t>(operation.kind);
  call.dtype = static_cast<std::uint8_t>(operation.dtype);
  call.op = static_cast<std::uint8_t>(operation.op);
  std::memcpy(call.name, operation.name.data(), std::min(operation.name.size(), recorder::kNameBytes - 1));

  std::uint64_t words[kCallWords];
  std::memcpy(words, &call, sizeof call);
  Entry& place = entry(call.number);
  const Writing writing(place);
  for (std::size_t i = 0; i < kCallWords; ++i) place.words[i].store(words[i], std::memory_order_release);
  if (call.comm == 0 && call.kind < recorder::kFirstPairKind) {
    header_->world_seq.store(call.seq, std::memory_order_relaxed);
  }
  return call.number;
}

void Recorder::end(std::uint64_t number, int status) {
  Entry& place = entry(number);
  if (place.words[0].load(std::memory_order_relaxed) != number) return;  // overwritten long ago
  const Writing writing(place);
  // The status is one byte of a word.
  constexpr std::size_t kStatusWord = offsetof(Call, status) / sizeof(std::uint64_t);
  constexpr std::size_t kStatusByte = offsetof(Call, status) % sizeof(std::uint64_t);
  std::uint64_t word = place.words[kStatusWord].load(std::memory_order_relaxed);
  reinterpret_cast<std::int8_t*>(&word)[kStatusByte] = static_cast<std::int8_t>(status);
  place.words[kStatusWord].store(word, std::memory_order_release);
  place.words[offsetof(Call, ended_ns) / sizeof(std::uint64_t)].store(static_cast<std::uint64_t>(monotonic_ns()),
                                                                      std::memory_order_release);
}

}  // namespace drun::runtime
