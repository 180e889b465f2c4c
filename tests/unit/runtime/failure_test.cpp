#include "runtime/src/failure.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "runtime/src/last_error.h"

namespace drun::runtime {
namespace {

TEST(FailureCode, EachStatusHasItsOwn) {
  std::set<std::string> texts;
  for (int status = DRUN_ERROR_ARGUMENT; status >= DRUN_ERROR_INTERNAL; --status) {
    texts.insert(with_code(Failure{status, "a", -1, ""}));
  }
  EXPECT_EQ(texts, (std::set<std::string>{"a [aborted]", "a [argument]", "a [call-timeout]", "a [internal]",
                                          "a [mismatch]", "a [not-joined]", "a [peer]", "a [state]", "a [system]",
                                          "a [truncated]", "a [unsupported]"}));
}

TEST(FailureCode, IsInTheTextOfTheCaller) {
  EXPECT_EQ(report(failure(DRUN_ERROR_MISMATCH, "rank 1 called barrier", 1, "h1")), DRUN_ERROR_MISMATCH);
  EXPECT_EQ(last_error().text, "rank 1 called barrier [mismatch]");
  EXPECT_EQ(last_error().rank, 1);
  EXPECT_EQ(report({}), DRUN_OK);
  EXPECT_EQ(last_error().text, "rank 1 called barrier [mismatch]");
}

}  // namespace
}  // namespace drun::runtime
