// Reporting of failures by the C functions: the status that they return, and the text that a thread can query.
#pragma once

#include <exception>
#include <new>

#include "runtime/src/failure.h"

namespace drun::runtime {

// The failure of this thread's last call that failed. Its text ends with the code of its status.
const Failure& last_error();
// Returns DRUN_OK, or stores the failure as this thread's last and returns its status.
int report(const Status& status);

// Calls `f` and reports its status. Exceptions become failures, because none may leave a C function.
template <typename F>
int caught(F f) noexcept {
  try {
    return report(f());
  } catch (const std::bad_alloc&) {
    return report(failure(DRUN_ERROR_SYSTEM, "out of memory"));
  } catch (const std::exception& e) {
    return report(failure(DRUN_ERROR_INTERNAL, e.what()));
  }
}

}  // namespace drun::runtime
