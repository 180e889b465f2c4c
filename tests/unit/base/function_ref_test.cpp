#include "base/function_ref.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

namespace drun {
namespace {

int call_twice(FunctionRef<int(int)> function) { return function(1) + function(2); }

TEST(FunctionRef, CallsWhatItRefersTo) {
  int n_calls = 0;
  const auto count = [&](int value) {
    ++n_calls;
    return 10 * value;
  };
  EXPECT_EQ(call_twice(count), 30);
  EXPECT_EQ(n_calls, 2);
}

TEST(FunctionRef, PassesOnWhatCanOnlyBeMoved) {
  const auto take = [](std::unique_ptr<std::string> text, std::string& out) { out = std::move(*text); };
  const FunctionRef<void(std::unique_ptr<std::string>, std::string&)> reference = take;
  std::string out;
  reference(std::make_unique<std::string>("text"), out);
  EXPECT_EQ(out, "text");
}

}  // namespace
}  // namespace drun
