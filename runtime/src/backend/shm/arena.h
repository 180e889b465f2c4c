// Memory that the ranks of a host share: a memfd that the agent passes to each of them. It is divided into regions, one
// for each communicator that has several ranks on the host.
#pragma once

#include <cstddef>
#include <memory>

#include "base/error.h"
#include "base/fd.h"

namespace drun::runtime {

// The first page counts the bytes in use. Regions do not move; the pages of unused regions go back to the system.
class Arena {
 public:
  // Empties the memory. Called by one rank of the host, before the others join. Takes over the descriptor.
  static Result<std::shared_ptr<Arena>> create(Fd memory);
  // Fails if the memory was set up by another version of libdrun. Takes over the descriptor.
  static Result<std::shared_ptr<Arena>> join(Fd memory);
  ~Arena();
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  // Reserves a region of `n_bytes` and returns its offset. All its pages are zero and allocated: a page that can't be
  // allocated later would be a SIGBUS. Any rank, at any time.
  Result<std::size_t> reserve(std::size_t n_bytes);
  // Maps a region into this process; the caller unmaps it.
  Result<void*> map(std::size_t offset, std::size_t n_bytes) const;
  // Frees a region that no process uses any more.
  void release(std::size_t offset, std::size_t n_bytes) const;

 private:
  struct Header;
  Arena(Fd memory, void* header) : memory_(std::move(memory)), header_(static_cast<Header*>(header)) {}
  static Result<std::shared_ptr<Arena>> open(Fd memory);

  Fd memory_;
  Header* header_;
};

}  // namespace drun::runtime
