// An argument of a C function that has a number for each rank.
#pragma once

#include <cstddef>
#include <memory>
#include <new>
#include <vector>

#include "runtime/include/drun/drun.h"
#include "runtime/src/deferred_calls.h"
#include "runtime/src/runtime_state.h"

namespace drun::runtime {

// Copies the array for a deferred call, because the caller may change it after making the
// call.
class PerRank {
 public:
  PerRank(const std::size_t* given, drun_comm comm, const drun_call_options* options) noexcept : given_(given) {
    try {
      if (given == nullptr || !is_later(options)) return;
      const int size = state().process.place_in(comm).size;
      if (size < 0) return;
      kept_ = std::make_shared<const std::vector<std::size_t>>(given, given + size);
    } catch (const std::bad_alloc&) {
      no_memory_ = true;
    }
  }
  const std::size_t* get() const {
    if (no_memory_) throw std::bad_alloc();  // thrown here, where it fails the call
    return kept_ ? kept_->data() : given_;
  }

 private:
  const std::size_t* given_;
  std::shared_ptr<const std::vector<std::size_t>> kept_;
  bool no_memory_ = false;
};

}  // namespace drun::runtime
