// The file that same_calls.cpp writes and mpi_test.cpp reads: for each result a Record, followed by its bytes.
#pragma once

#include <cstdint>

namespace drun::testing {

struct Record {
  char label[64];         // the call, for error texts; the same from both libraries
  std::int32_t dtype;     // a drun_dtype
  std::int32_t op;        // a drun_op; -1: the data was only moved
  std::uint64_t n_bytes;  // 0: this rank gets nothing
};

}  // namespace drun::testing
