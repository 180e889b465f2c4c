// The memory that the ranks of a host share, a memfd that the agent hands to each of them, and the regions in it: one
// for each communicator that has several ranks on the host.
#pragma once

#include <cstddef>
#include <memory>

#include "base/error.h"
#include "base/fd.h"

namespace drun::runtime {

// Its first page counts what is taken. Regions stay where they are; what nobody uses any more goes back to the system.
class Arena {
 public:
  // Empties the memory. By one rank of the host, before the others join in; takes the descriptor over.
  static Result<std::shared_ptr<Arena>> create(Fd memory);
  // Fails if it was made by another version of libdrun.
  static Result<std::shared_ptr<Arena>> join(Fd memory);
  ~Arena();
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  // Where a new region of so many bytes begins. All its pages are zero and claimed, since a lack of them would be a
  // SIGBUS later. Any rank, at any time.
  Result<std::size_t> reserve(std::size_t n_bytes);
  // Into this process; to be unmapped by the caller.
  Result<void*> map(std::size_t offset, std::size_t n_bytes) const;
  // Nobody uses it any more.
  void release(std::size_t offset, std::size_t n_bytes) const;

 private:
  struct Header;
  Arena(Fd memory, void* header) : memory_(std::move(memory)), header_(static_cast<Header*>(header)) {}
  static Result<std::shared_ptr<Arena>> open(Fd memory);

  Fd memory_;
  Header* header_;
};

}  // namespace drun::runtime
