#include "runtime/src/recorder.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <string_view>

#include "runtime/src/words.h"

namespace drun::runtime {

namespace {

using recorder::Call;
using recorder::Entry;
using recorder::Header;
using recorder::kCallWords;

constexpr std::size_t word_of(std::size_t offset) { return offset / sizeof(std::uint64_t); }
constexpr std::size_t kEndedWord = word_of(offsetof(Call, ended_ns)), kStatusWord = word_of(offsetof(Call, status)),
                      kNameWord = word_of(offsetof(Call, name));
static_assert(offsetof(Call, name) % sizeof(std::uint64_t) == 0);
// `value`, shifted to its offset within its word.
constexpr std::uint64_t part(std::uint64_t value, std::size_t offset) {
  static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__);
  return value << offset % sizeof(std::uint64_t) * 8;
}
static_assert(word_of(offsetof(Call, comm)) == word_of(offsetof(Call, group)) &&
              word_of(offsetof(Call, root)) == word_of(offsetof(Call, queued_us)) &&
              word_of(offsetof(Call, kind)) == kStatusWord && word_of(offsetof(Call, dtype)) == kStatusWord &&
              word_of(offsetof(Call, op)) == kStatusWord);

// Writes the name, up to and including its terminating zero.
void write_name(Entry& place, std::string_view name) {
  static_assert((kCallWords - kNameWord) * sizeof(std::uint64_t) == recorder::kNameBytes);
  std::size_t at = kNameWord;
  for_words(name.substr(0, recorder::kNameBytes - 1),
            [&](std::uint64_t word, std::size_t) { place.words[at++].store(word, std::memory_order_release); });
}

constexpr std::uint32_t kMaxEntries = 1u << 20;

// While this lives, readers take the entry for torn. Words are stored with release, so that none is visible before the
// odd sequence; a fence would do too, but TSan does not support fences.
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
                     n_entries <= kMaxEntries && recorder::bytes_for(n_entries) <= n_bytes;
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
  const std::uint64_t number = header_->n_begun.load(std::memory_order_relaxed) + 1;
  header_->n_begun.store(number, std::memory_order_relaxed);
  const std::chrono::nanoseconds started = operation.clock.began().time_since_epoch();
  const auto queued_us = std::chrono::duration_cast<std::chrono::microseconds>(queued).count();
  Entry& place = entry(number);
  const Writing writing(place);
  // Builds Call's words in registers: bytes that are written one by one and then read as a word would take longer than
  // all the rest.
  std::uint64_t words[kNameWord] = {};
  words[word_of(offsetof(Call, number))] = number;
  words[word_of(offsetof(Call, seq))] = operation.seq;
  words[word_of(offsetof(Call, count))] = operation.count;
  words[word_of(offsetof(Call, started_ns))] = static_cast<std::uint64_t>(started.count());
  words[word_of(offsetof(Call, comm))] =
      part(operation.comm, offsetof(Call, comm)) | part(static_cast<std::uint32_t>(group), offsetof(Call, group));
  words[word_of(offsetof(Call, root))] =
      part(static_cast<std::uint32_t>(root), offsetof(Call, root)) |
      part(static_cast<std::uint64_t>(std::clamp<std::int64_t>(queued_us, 0, UINT32_MAX)), offsetof(Call, queued_us));
  words[kStatusWord] = part(static_cast<std::uint8_t>(operation.kind), offsetof(Call, kind)) |
                       part(static_cast<std::uint8_t>(operation.dtype), offsetof(Call, dtype)) |
                       part(static_cast<std::uint8_t>(operation.op), offsetof(Call, op));
  for (std::size_t i = 0; i < kNameWord; ++i) place.words[i].store(words[i], std::memory_order_release);
  // Readers stop at the zero of an empty name.
  place.words[kNameWord].store(0, std::memory_order_release);
  if (!operation.name.empty()) write_name(place, operation.name);
  if (operation.comm == 0 && static_cast<std::uint8_t>(operation.kind) < recorder::kFirstPairKind) {
    header_->world_seq.store(operation.seq, std::memory_order_relaxed);
  }
  return number;
}

void Recorder::end(std::uint64_t number, int status, std::int64_t ended_ns) {
  Entry& place = entry(number);
  if (place.words[0].load(std::memory_order_relaxed) != number) return;  // overwritten long ago
  const Writing writing(place);
  const std::uint64_t word = place.words[kStatusWord].load(std::memory_order_relaxed);
  place.words[kStatusWord].store(word | part(static_cast<std::uint8_t>(status), offsetof(Call, status)),
                                 std::memory_order_release);
  place.words[kEndedWord].store(static_cast<std::uint64_t>(ended_ns), std::memory_order_release);
}

}  // namespace drun::runtime
