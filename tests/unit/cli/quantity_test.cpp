#include "cli/quantity.h"

#include <gtest/gtest.h>

namespace drun::cli {
namespace {

TEST(CheckUnits, ReadsSizes) {
  const struct {
    const char* text;
    std::size_t n_bytes;
  } cases[] = {{"1", 1},
               {"4096", 4096},
               {"100MB", 100000000},
               {"100mb", 100000000},
               {"25MiB", 26214400},
               {"25M", 26214400},
               {"1.5k", 1536},
               {"2GB", 2000000000},
               {"1 GiB", 1073741824},
               {"8B", 8},
               {"1TB", 1000000000000}};
  for (const auto& c : cases) {
    const auto got = parse_bytes(c.text);
    ASSERT_TRUE(got.has_value()) << c.text;
    EXPECT_EQ(*got, c.n_bytes) << c.text;
  }
  for (const char* bad :
       {"", "0", "-1", "MB", "100XB", "100MBB", "100Mbit", "1e30", "nan", "inf", "0x10", "100 M B", "1P"}) {
    const auto got = parse_bytes(bad);
    ASSERT_FALSE(got.has_value()) << bad;
    EXPECT_EQ(got.error().code, Errc::kUsage);
    EXPECT_NE(got.error().hint.find("100MB"), std::string::npos);
  }
}

TEST(CheckUnits, ReadsRatesAndTellsBitsFromBytes) {
  const struct {
    const char* text;
    double rate;
  } cases[] = {{"1gbit", 1e9},    {"10mbit", 1e7},  {"100Mbit/s", 1e8}, {"940Mbps", 940e6}, {"9.4mb/s", 9.4e6},
               {"125MB/s", 1e9},  {"125MBps", 1e9}, {"64kbit", 64e3},   {"8000b/s", 8000},  {"1000B/s", 8000},
               {"10 Gb/s", 10e9}, {"500bits", 500}, {"1Mbyte/s", 8e6}};
  for (const auto& c : cases) {
    const auto got = parse_rate(c.text);
    ASSERT_TRUE(got.has_value()) << c.text;
    EXPECT_DOUBLE_EQ(*got, c.rate) << c.text;
  }
  for (const char* bad : {"", "1", "1g", "0gbit", "-1gbit", "1gb", "gbit", "1gbit/h", "1pbit"}) {
    EXPECT_FALSE(parse_rate(bad).has_value()) << bad;
  }
}

TEST(CheckUnits, ReadsTimes) {
  const struct {
    const char* text;
    double seconds;
  } cases[] = {{"300ms", 0.3}, {"0.3s", 0.3}, {"250us", 250e-6}, {"250\u00b5s", 250e-6}, {"2min", 120}, {"1 s", 1}};
  for (const auto& c : cases) {
    const auto got = parse_time(c.text);
    ASSERT_TRUE(got.has_value()) << c.text;
    EXPECT_DOUBLE_EQ(*got, c.seconds) << c.text;
  }
  for (const char* bad : {"", "300", "0s", "-1s", "ms", "3h", "1e99s"})
    EXPECT_FALSE(parse_time(bad).has_value()) << bad;
}

TEST(CheckUnits, ReadsNumbersOfParameters) {
  const struct {
    const char* text;
    std::uint64_t n;
  } cases[] = {{"110M", 110000000}, {"7B", 7000000000}, {"7b", 7000000000},   {"1.5G", 1500000000},
               {"125k", 125000},    {"42", 42},         {"1T", 1000000000000}};
  for (const auto& c : cases) {
    const auto got = parse_count(c.text);
    ASSERT_TRUE(got.has_value()) << c.text;
    EXPECT_EQ(*got, c.n) << c.text;
  }
  for (const char* bad : {"", "0", "M", "110MB", "-1M", "1e20"}) EXPECT_FALSE(parse_count(bad).has_value()) << bad;
}

TEST(CheckUnits, KnowsTypesByTheNamesOfOthers) {
  const struct {
    const char* text;
    std::size_t n_bytes;
  } cases[] = {{"f16", 2},  {"half", 2},  {"fp16", 2},   {"float16", 2}, {"BF16", 2}, {"bfloat16", 2}, {"f32", 4},
               {"fp32", 4}, {"float", 4}, {"double", 8}, {"float64", 8}, {"int8", 1}, {"fp8", 1}};
  for (const auto& c : cases) {
    const auto got = parse_dtype_size(c.text);
    ASSERT_TRUE(got.has_value()) << c.text;
    EXPECT_EQ(*got, c.n_bytes) << c.text;
  }
  for (const char* bad : {"", "all", "f17", "string"}) EXPECT_FALSE(parse_dtype_size(bad).has_value()) << bad;
}

TEST(CheckUnits, WritesThreeDigits) {
  EXPECT_EQ(digits(9.41), "9.41");
  EXPECT_EQ(digits(9.996), "10");
  EXPECT_EQ(digits(94.12), "94.1");
  EXPECT_EQ(digits(941.4), "941");
  EXPECT_EQ(digits(1043), "1043");
  EXPECT_EQ(digits(2), "2");
  EXPECT_EQ(digits(0), "0");
}

}  // namespace
}  // namespace drun::cli
