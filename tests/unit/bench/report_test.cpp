#include "bench/report.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

namespace drun::bench {
namespace {

Heading heading() {
  Heading h;
  h.version = "0.1.0";
  h.time = "2026-01-31 23:59:59";
  h.settings.min_bytes = 8;
  h.settings.max_bytes = 128u << 20;
  h.settings.factor = 2;
  h.ranks = {{0, 4711, 0, "node0", 0, "cpu"}, {1, 4712, 1, "node0", 1, "cpu"}};
  h.bound_text = "line rate, 10 Gb/s (eth0 on node0)";
  h.bound.kind = BoundKind::kLineRate;
  h.bound.bytes_per_second = 1.25e9;
  return h;
}

Figures figures() {
  Figures f;
  f.seconds = 27.514e-6;
  f.bandwidth = {1.2345e9, 1.8517e9};
  f.p50_seconds = 26e-6;
  f.p99_seconds = 1234.5678e-6;
  f.percent = 71.234;
  f.wrong = 0;
  return f;
}

Row row() {
  Row r;
  r.n_bytes = 65536;
  r.count = 16384;
  r.type = "float";
  r.op = "sum";
  r.out_of_place = r.in_place = figures();
  return r;
}

TEST(BenchTable, BeginsAsNcclTests) {
  EXPECT_EQ(
      make_table()->begin(heading()),
      "# drun bench version 0.1.0\n"
      "# Collective test starting: all_reduce_perf\n"
      "# nThread 1 nGpus 1 minBytes 8 maxBytes 134217728 step: 2(factor) warmup iters: 1 iters: 20 agg iters: 1 "
      "validation: 1 graph: 0 unalign: 0\n"
      "#\n"
      "# Using devices\n"
      "#  Rank  0 Group  0 Pid   4711 on      node0 device  0 [cpu]\n"
      "#  Rank  1 Group  0 Pid   4712 on      node0 device  1 [cpu]\n"
      "#\n"
      "# Bound: line rate, 10 Gb/s (eth0 on node0)\n"
      "#\n"
      "#                                                        out-of-place                       in-place          "
      "      out-of-place            in-place\n"
      "#       size        count     type  redop root     time   algbw   busbw  #wrong     time   algbw   busbw  #wrong"
      "     p50     p99 %bound     p50     p99 %bound\n"
      "#        (B)   (elements)                          (us)  (GB/s)  (GB/s)             (us)  (GB/s)  (GB/s)        "
      "    (us)    (us)    (%)    (us)    (us)    (%)\n");
}

TEST(BenchTable, SaysWhichNcclAndWhichGpus) {
  Heading h = heading();
  h.nccl = "2.28.9 (/usr/lib/libnccl.so.2)";
  h.ranks[1].device = 3;
  h.ranks[1].device_info = "NVIDIA H100 80GB HBM3";
  const std::string text = make_table()->begin(h);
  EXPECT_NE(text.find("\n# NCCL 2.28.9 (/usr/lib/libnccl.so.2)\n"), std::string::npos) << text;
  EXPECT_NE(text.find(" on      node0 device  3 [NVIDIA H100 80GB HBM3]\n"), std::string::npos) << text;
}

TEST(BenchTable, RowsAreThoseOfNcclTestsWithMoreBehind) {
  const auto table = make_table();
  table->begin(heading());
  EXPECT_EQ(table->row(row()),
            "       65536        16384    float    sum   -1    27.51    1.23    1.85       0    27.51    1.23    "
            "1.85       0   26.00 1234.57  71.23   26.00 1234.57  71.23\n");
}

TEST(BenchTable, Fits160Columns) {
  const auto table = make_table();
  std::istringstream begin(table->begin(heading()));
  for (std::string line; std::getline(begin, line);) EXPECT_LE(line.size(), 160u) << line;
  EXPECT_LE(table->row(row()).size(), 161u);
}

TEST(BenchTable, WhatIsNotKnownIsSaid) {
  const auto table = make_table();
  table->begin(heading());
  Row r = row();
  r.in_place.reset();
  r.out_of_place->wrong.reset();
  r.out_of_place->percent = -1;
  r.op = "none";
  r.root = 3;
  EXPECT_EQ(table->row(r),
            "       65536        16384    float   none    3    27.51    1.23    1.85     N/A      N/A     N/A     "
            "N/A     N/A   26.00 1234.57      -     N/A     N/A      -\n");
}

TEST(BenchTable, EveryRowHas19Columns) {
  const auto table = make_table();
  table->begin(heading());
  Row r = row();
  r.n_bytes = 1ull << 40;
  r.out_of_place->seconds = 123456;
  r.out_of_place->wrong = 123456789;
  r.in_place.reset();
  for (const Row& one : {row(), r}) {
    std::istringstream words(table->row(one));
    std::string word;
    int n = 0;
    while (words >> word) ++n;
    EXPECT_EQ(n, 19);
  }
}

TEST(BenchTable, EndsAsNcclTests) {
  const auto table = make_table();
  table->begin(heading());
  EXPECT_EQ(table->end({0, 1.234567e9, ""}),
            "# Out of bounds values : 0 OK\n"
            "# Avg bus bandwidth    : 1.23457 \n"
            "#\n"
            "# Collective test concluded: all_reduce_perf\n"
            "#\n"
            "\n");
  EXPECT_EQ(table->end({2, 0, ""}).substr(0, 34), "# Out of bounds values : 2 FAILED\n");
}

TEST(BenchTable, SaysThatSizesWereReduced) {
  Heading h = heading();
  h.reduced_to_bytes = 1000;
  EXPECT_NE(make_table()->begin(h).find("# Reducing maxBytes to 1000 due to memory limitation\n"), std::string::npos);
}

TEST(BenchTable, NumbersFitTheirColumn) {
  EXPECT_EQ(fit(1.234, 7), "   1.23");
  EXPECT_EQ(fit(12345.678, 7), "12345.7");
  EXPECT_EQ(fit(1234567.8, 7), "1234568");
  EXPECT_EQ(fit(123456789, 7), "1.2e+08");
  EXPECT_EQ(fit(1234567, 6), " 1e+06");
}

TEST(BenchJson, IsOneDocumentWithNcclTestsNames) {
  const auto json = make_json();
  Heading h = heading();
  h.ranks[1].host = "a\"b\\c\n";
  std::string text = json->begin(h);
  text += json->row(row());
  Row second = row();
  second.in_place.reset();
  second.out_of_place->wrong = 7;
  second.out_of_place->percent = -1;
  text += json->row(second);
  text += json->end({1, 1.5e9, "2026-02-01 00:00:00"});
  const auto parsed = nlohmann::json::parse(text);
  EXPECT_EQ(parsed["config"]["minimum_bytes"], 8);
  EXPECT_EQ(parsed["config"]["step_factor"], 2);
  EXPECT_EQ(parsed["config"]["devices"][1]["hostname"], "a\"b\\c\n");
  EXPECT_EQ(parsed["bound"]["kind"], "line_rate");
  ASSERT_EQ(parsed["results"].size(), 2u);
  const auto& first = parsed["results"][0];
  EXPECT_EQ(first["size"], 65536);
  EXPECT_EQ(first["type"], "float");
  EXPECT_DOUBLE_EQ(first["out_of_place"]["time"], 27.514);
  EXPECT_DOUBLE_EQ(first["in_place"]["bus_bw"], 1.8517);
  EXPECT_EQ(first["in_place"]["nwrong"], 0);
  EXPECT_EQ(first["experiment_name"], "all_reduce_perf");
  EXPECT_TRUE(parsed["results"][1]["in_place"].is_null());
  EXPECT_TRUE(parsed["results"][1]["out_of_place"]["bound_percent"].is_null());
  EXPECT_EQ(parsed["out_of_bounds"]["count"], 1);
  EXPECT_EQ(parsed["out_of_bounds"]["okay"], "false");
  EXPECT_DOUBLE_EQ(parsed["average_bus_bandwidth"]["bandwidth"], 1.5);
}

TEST(BenchJson, HasNoRowsIfThereAreNone) {
  const auto json = make_json();
  const std::string text = json->begin(heading()) + json->end({});
  EXPECT_TRUE(nlohmann::json::parse(text)["results"].empty());
}

}  // namespace
}  // namespace drun::bench
