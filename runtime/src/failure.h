// Failure of an operation of the runtime: the status of the C ABI, the text, and the rank it is due to.
#pragma once

#include <string>
#include <tl/expected.hpp>
#include <utility>

#include "base/error.h"
#include "runtime/include/drun/drun.h"

namespace drun::runtime {

struct Failure {
  int status = DRUN_ERROR_INTERNAL;
  std::string text;
  int rank = -1;  // the rank it is due to; -1: none or unknown
  std::string host;
};

template <typename T>
using Outcome = tl::expected<T, Failure>;
using Status = Outcome<void>;

inline tl::unexpected<Failure> failure(int status, std::string text, int rank = -1, std::string host = {}) {
  return tl::unexpected<Failure>(Failure{status, std::move(text), rank, std::move(host)});
}

// The text with the code of the status at its end, "... [mismatch]", as a caller of the C functions gets it.
std::string with_code(const Failure& failure);

// `what` is prefixed to the text of the error.
Failure from_error(const Error& error, const std::string& what);

}  // namespace drun::runtime
