#include "launcher/run/timeline.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "tests/temp_folder.h"

namespace drun::launcher {
namespace {

using Json = nlohmann::json;

control::RecordedCall call(std::uint8_t kind, std::uint64_t seq, std::uint64_t from_ns, std::uint64_t to_ns) {
  control::RecordedCall c;
  c.kind = kind;
  c.seq = seq;
  c.count = 10;
  c.dtype = 8;
  c.started_ns = from_ns;
  c.ended_ns = to_ns;
  return c;
}

control::Timeline news(std::uint32_t rank, std::vector<control::RecordedCall> calls, std::uint64_t n_lost = 0) {
  control::Timeline m;
  m.rank = rank;
  m.n_lost = n_lost;
  m.calls = std::move(calls);
  return m;
}

Json written(const TimelineCalls& calls) {
  std::string text;
  EXPECT_TRUE(calls.write("0011", [&](std::string_view piece) {
    text += piece;
    return true;
  }));
  return Json::parse(text);
}

// The ranks of a job whose hosts are node1, node2, ...; `hosts`: by rank.
RankTable ranks_on(const std::vector<int>& hosts) {
  Placement placement;
  std::vector<std::string> names;
  for (const int host : hosts) {
    RankPlace place;
    place.rank = static_cast<int>(placement.ranks.size());
    place.host = host;
    placement.ranks.push_back(place);
    if (static_cast<std::size_t>(host) == names.size()) names.push_back("node" + std::to_string(host + 1));
  }
  RankTable table;
  table.place(placement, names);
  return table;
}

std::vector<Json> of(const Json& file, const std::string& phase) {
  std::vector<Json> out;
  for (const auto& event : file["traceEvents"]) {
    if (event["ph"] == phase) out.push_back(event);
  }
  return out;
}

TEST(Timeline, AJobWithoutCallsIsAValidFile) {
  RankTable ranks = ranks_on({0});
  TimelineCalls calls;
  calls.expect(ranks, 0);
  const auto file = written(calls);
  EXPECT_TRUE(of(file, "X").empty());
  EXPECT_EQ(file["otherData"]["job"], "0011");
}

TEST(Timeline, HasEveryCallOnOneClockUnderItsHostAndRank) {
  RankTable ranks = ranks_on({0, 0, 1});
  TimelineCalls calls;
  calls.expect(ranks, 1'000'000);
  control::ClockAlignment ahead;
  ahead.add(0, 2000, 501'000);  // node2's clock is 500 us ahead
  calls.clock(1).add(ahead);
  auto sum = call(1, 12, 3'000'000, 3'500'250);
  sum.name = "grad.17";
  calls.take(news(0, {sum}));
  calls.take(news(2, {call(4, 13, 3'500'000, 3'600'000)}));
  auto send = call(12, 1, 4'000'000, 4'000'001);
  send.root = 2;
  send.comm = 3;
  send.group = 1;
  send.status = -5;
  send.queued_us = 7;
  calls.take(news(0, {send}));
  const auto file = written(calls);
  const auto events = of(file, "X");
  ASSERT_EQ(events.size(), 3u);
  EXPECT_EQ(events[0],
            Json::parse(R"({"ph":"X","pid":0,"tid":0,"ts":2000.0,"dur":500.25,"name":"allreduce","cat":"libdrun",
      "args":{"seq":12,"name":"grad.17","count":10,"dtype":"f32","bytes":40,"op":"sum"}})"));
  EXPECT_EQ(events[1], Json::parse(R"({"ph":"X","pid":0,"tid":0,"ts":3000.0,"dur":0.001,"name":"send","cat":"libdrun",
      "args":{"seq":1,"count":10,"dtype":"f32","bytes":40,"peer":2,"communicator":3,"group":1,"queued_us":7,"status":-5}})"));
  EXPECT_EQ(events[2],
            Json::parse(R"({"ph":"X","pid":1,"tid":2,"ts":2000.0,"dur":100.0,"name":"barrier","cat":"libdrun",
      "args":{"seq":13}})"));
  EXPECT_EQ(file["otherData"]["hosts"][1]["name"], "node2");
  EXPECT_EQ(file["otherData"]["hosts"][1]["clock_uncertainty_us"], 1.0);
  std::vector<std::string> names;
  for (const auto& event : of(file, "M")) {
    if (event["args"].contains("name")) names.push_back(event["args"]["name"]);
  }
  EXPECT_EQ(names, (std::vector<std::string>{"node1", "node2", "rank 0", "rank 1", "rank 2"}));
}

TEST(Timeline, ACallThatWentOnEndsWithItsRank) {
  RankTable ranks = ranks_on({0});
  TimelineCalls calls;
  calls.expect(ranks, 0);
  calls.take(news(0, {call(1, 1, 5'000, 0)}));
  control::Exited end;
  end.time_ns = 9'000;
  ranks.exited(end, 0);
  const auto event = of(written(calls), "X").at(0);
  EXPECT_EQ(event["dur"], 4.0);
  EXPECT_EQ(event["args"]["unfinished"], true);
}

TEST(Timeline, LostCallsAreCounted) {
  RankTable ranks = ranks_on({0, 0});
  TimelineCalls calls;
  calls.expect(ranks, 0);
  calls.take(news(1, {call(4, 9, 1, 2)}, 8));
  calls.take(news(1, {}, 2));
  EXPECT_EQ(calls.n_lost(), 10u);
  EXPECT_EQ(calls.n_calls(), 1u);
  EXPECT_EQ(written(calls)["otherData"]["lost"], Json::parse(R"({"1":10})"));
}

TEST(Timeline, WhateverAWorkersMemorySaysTheFileIsValid) {
  RankTable ranks = ranks_on({0});
  TimelineCalls calls;
  calls.expect(ranks, 0);
  auto strange = call(255, UINT64_MAX, UINT64_MAX, 1);
  strange.dtype = strange.op = 255;
  strange.count = UINT64_MAX;
  strange.root = INT32_MIN;
  strange.status = 1 << 30;
  strange.name = "a\"b\\\x01\xff";
  calls.take(news(0, {strange, call(0, 0, 1, 0)}));
  calls.take(news(5, {call(1, 1, 1, 2)}));
  const auto events = of(written(calls), "X");
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(events[0]["name"], "operation 255");
  EXPECT_GE(events[0]["dur"], 0.0);
}

TEST(Timeline, AWriterThatFailsEndsIt) {
  RankTable ranks = ranks_on({0});
  TimelineCalls calls;
  calls.expect(ranks, 0);
  EXPECT_FALSE(calls.write("0011", [](std::string_view) { return false; }));
}

TEST(TimelineFile, IsThereOnceItIsWhole) {
  const testing::TempFolder folder;
  const RankTable ranks = ranks_on({0});
  asio::io_context io(1);
  Timeline timeline(io);
  EXPECT_FALSE(timeline.is_open());
  ASSERT_FALSE(timeline.open(folder.path("missing/timeline.json")));
  ASSERT_TRUE(timeline.open(folder.path("timeline.json")));
  EXPECT_TRUE(timeline.is_open());
  EXPECT_TRUE(std::filesystem::is_empty(folder.path())) << "a drun that is killed now would leave it";
  timeline.expect({}, ranks, 0);
  ASSERT_TRUE(timeline.write("0011"));
  EXPECT_EQ(Json::parse(folder.read("timeline.json"))["otherData"]["lost"], Json::parse("{}"));
  EXPECT_FALSE(timeline.is_open());
}

}  // namespace
}  // namespace drun::launcher
