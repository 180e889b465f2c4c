#include "launcher/report/signal_text.h"

#include <gtest/gtest.h>

#include <csignal>
#include <cstring>

#include "base/text.h"

namespace drun::launcher {
namespace {

TEST(SignalText, HasTheNamesOfTheCLibrary) {
  for (int number = 1; number < 32; ++number) {
    ASSERT_NE(::sigabbrev_np(number), nullptr);
    EXPECT_EQ(signal_name(number), "SIG" + std::string(::sigabbrev_np(number)));
    EXPECT_EQ(signal_text(number), signal_name(number) + " (" + lower(::sigdescr_np(number)) + ")");
  }
}

TEST(SignalText, HasNumbersForSignalsWithoutNames) {
  for (const int number : {-1, 0, 32, 40, 64, 1000}) {
    EXPECT_EQ(signal_name(number), "signal " + std::to_string(number));
    EXPECT_EQ(signal_text(number), "signal " + std::to_string(number));
  }
}

}  // namespace
}  // namespace drun::launcher
