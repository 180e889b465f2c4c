#include "recorder/words.h"

#include <gtest/gtest.h>

#include "runtime/src/dtype.h"
#include "tests/unit/recorder/recorder_memory.h"

namespace drun::recorder {
namespace {

using runtime::OpKind;

// drun is built separately from libdrun and has its own copy of the names.
TEST(RecorderWords, AreLibdrunsOwn) {
  for (int kind = 1; kind <= static_cast<int>(OpKind::kRecv); ++kind) {
    const auto op = operation(static_cast<OpKind>(kind), 12, "grad.17");
    const std::string own = call_text(kind, 0, 12, 0, "grad.17");
    EXPECT_EQ(own.substr(0, runtime::name_of(op).size()), runtime::name_of(op));
  }
  for (const std::uint32_t comm : {0u, 1u, 2u, 16u}) {
    auto op = operation(OpKind::kBarrier, 12);
    op.comm = comm;
    EXPECT_EQ(call_text(4, comm, 12, 0, ""), runtime::name_of(op));
  }
  for (int type = 0; runtime::is_dtype(type); ++type) {
    EXPECT_EQ(dtype_text(type), runtime::name_of(static_cast<drun_dtype>(type)));
    EXPECT_EQ(dtype_bytes(type), runtime::size_of(static_cast<drun_dtype>(type)));
  }
  for (int op = 0; runtime::is_op(op); ++op) EXPECT_EQ(op_text(op), runtime::name_of(static_cast<drun_op>(op)));
}

TEST(RecorderWords, OfAPairNameTheOther) {
  EXPECT_EQ(call_text(12, 0, 3, 2, ""), "send #3 to rank 2");
  EXPECT_EQ(call_text(13, 0, 3, 2, "x"), "recv #3 'x' from rank 2");
}

TEST(RecorderWords, UnknownNumbersAreShown) {
  for (const int number : {-1, 0, 99}) {
    EXPECT_EQ(kind_text(number), "operation " + std::to_string(number));
    EXPECT_FALSE(reduces(number));
    EXPECT_FALSE(has_root(number));
  }
  EXPECT_EQ(dtype_text(99), "type 99");
  EXPECT_EQ(dtype_bytes(99), 0u);
  EXPECT_EQ(op_text(99), "op 99");
}

}  // namespace
}  // namespace drun::recorder
