// What the C functions tell of a failure: the status that they return, and the text that this thread can ask for.
#pragma once

#include <exception>
#include <new>

#include "runtime/src/failure.h"

namespace drun::runtime {

// Of this thread's last call that failed.
const Failure& last_error();
// DRUN_OK; or keeps the failure as this thread's last, and returns its status.
int report(const Status& status);

// No exception leaves a C function.
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
