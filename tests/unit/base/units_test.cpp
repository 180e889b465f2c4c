#include "base/units.h"

#include <gtest/gtest.h>

#include <vector>

namespace drun {
namespace {

TEST(Units, TimesHaveUnitsThatPeopleThinkIn) {
  EXPECT_EQ(time_text(12.4e-6), "12.4 us");
  EXPECT_EQ(time_text(0.128), "128 ms");
  EXPECT_EQ(time_text(0), "0 s");
  EXPECT_EQ(time_text(std::chrono::milliseconds(61234)), "61.2 s");
  EXPECT_EQ(time_text(599), "599 s");
  EXPECT_EQ(time_text(1500), "25 min");
  EXPECT_EQ(time_text(17603), "4.89 h");
}

TEST(Units, LimitsAreNotRounded) {
  using std::chrono::milliseconds;
  EXPECT_EQ(limit_text(milliseconds(300000)), "300 s");
  EXPECT_EQ(limit_text(milliseconds(1500)), "1500 ms");
  EXPECT_EQ(limit_text(milliseconds(0)), "0 s");
}

TEST(Units, SmallSharesAreNotZero) {
  struct Case {
    double share;
    const char* text;
  };
  for (const Case& c : std::vector<Case>{{0, "0 %"},
                                         {0.00001, "less than 0.01 %"},
                                         {0.0002, "0.02 %"},
                                         {0.00234, "0.2 %"},
                                         {0.0312, "3.1 %"},
                                         {0.0996, "10 %"},
                                         {0.7512, "75 %"},
                                         {1, "100 %"}}) {
    EXPECT_EQ(share_text(c.share), c.text) << c.share;
  }
}

TEST(Units, FiguresHaveThreeDigitsThatCount) {
  struct Case {
    double value;
    const char* text;
  };
  for (const Case& c : std::vector<Case>{{0, "0"},
                                         {0.009441, "0.00944"},
                                         {0.1, "0.1"},
                                         {6.8449, "6.84"},
                                         {9.996, "10"},
                                         {99.96, "100"},
                                         {94.1, "94.1"},
                                         {941.4, "941"},
                                         {8852, "8850"},
                                         {20833, "20800"},
                                         {-1.5, "-1.5"}}) {
    EXPECT_EQ(figure_text(c.value), c.text) << c.value;
  }
}

TEST(Units, OneUnitServesTheTypicalAndTheLeast) {
  struct Case {
    double typical, least;
    const char* name;
  };
  for (const Case& c : std::vector<Case>{{9.41e9, 9.1e9, "Gb/s"},
                                         {7.17e9, 0.94e9, "Gb/s"},
                                         {13.7e9, 195e6, "Gb/s"},
                                         {20.8e9, 9.44e6, "Mb/s"},
                                         {941e6, 9.4e6, "Mb/s"},
                                         {941e6, 50e3, "kb/s"},
                                         {20.8e9, 50e3, "Mb/s"},  // a smaller unit would need more digits
                                         {500, 100, "b/s"},
                                         {0, 0, "b/s"}}) {
    EXPECT_STREQ(rate_unit(c.typical, c.least).name, c.name) << c.typical << " " << c.least;
  }
  EXPECT_EQ(rate_unit(20.8e9, 9.44e6).text(20.83e9), "20800 Mb/s");
  EXPECT_EQ(rate_unit(13.7e9, 195e6).text(195e6), "0.195 Gb/s");
  EXPECT_EQ(time_unit(84e-6, 80e-6).text(84e-6), "84 us");
  EXPECT_EQ(time_unit(20e-3, 84e-6).text(20e-3), "20000 us");
  EXPECT_EQ(time_unit(0.31, 0.2).text(0.31), "310 ms");
}

}  // namespace
}  // namespace drun
