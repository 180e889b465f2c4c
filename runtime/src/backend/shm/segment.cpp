#include "runtime/src/backend/shm/segment.h"

#include <sys/mman.h>

#include <string>
#include <utility>

namespace drun::runtime {
namespace {

constexpr std::size_t kPage = 4096;

std::string in_mib(std::size_t n_bytes) { return std::to_string((n_bytes + (1u << 20) - 1) >> 20) + " MiB"; }

Error memory_error(Error error, std::size_t n_bytes, int n_ranks) {
  error.cause = "no shared memory of " + in_mib(n_bytes) + " for " + std::to_string(n_ranks) + " ranks: " + error.cause;
  return error;
}

}  // namespace

std::size_t Segment::control_bytes(int n_ranks) {
  const std::size_t n_bytes = sizeof(Head) + static_cast<std::size_t>(n_ranks) * sizeof(Control);
  return (n_bytes + kPage - 1) / kPage * kPage;
}

std::size_t Segment::bytes_for(int n_ranks) {
  return control_bytes(n_ranks) + static_cast<std::size_t>(n_ranks) * 4 * kSlotBytes;
}

Segment::Segment(std::shared_ptr<Arena> arena, std::size_t offset, void* memory, int n_ranks)
    : arena_(std::move(arena)),
      offset_(offset),
      n_ranks_(n_ranks),
      n_bytes_(bytes_for(n_ranks)),
      memory_(memory),
      controls_(reinterpret_cast<Control*>(static_cast<char*>(memory) + sizeof(Head))),
      slots_(static_cast<char*>(memory) + control_bytes(n_ranks)) {}

Segment::~Segment() {
  const bool last = static_cast<Head*>(memory_)->n_left.fetch_add(1) + 1 == n_ranks_;
  ::munmap(memory_, n_bytes_);
  if (last) arena_->release(offset_, n_bytes_);
}

Result<std::shared_ptr<Segment>> Segment::create(std::shared_ptr<Arena> arena, int n_ranks) {
  const auto offset = arena->reserve(bytes_for(n_ranks));
  if (!offset) return fail(memory_error(offset.error(), bytes_for(n_ranks), n_ranks));
  auto segment = map(arena, *offset, n_ranks);
  if (!segment) arena->release(*offset, bytes_for(n_ranks));
  return segment;
}

Result<std::shared_ptr<Segment>> Segment::map(std::shared_ptr<Arena> arena, std::size_t offset, int n_ranks) {
  const auto memory = arena->map(offset, bytes_for(n_ranks));
  if (!memory) return fail(memory_error(memory.error(), bytes_for(n_ranks), n_ranks));
  return std::shared_ptr<Segment>(new Segment(std::move(arena), offset, *memory, n_ranks));
}

}  // namespace drun::runtime
