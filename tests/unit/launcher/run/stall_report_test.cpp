#include "launcher/run/stall_report.h"

#include <gtest/gtest.h>

namespace drun::launcher {
namespace {

using namespace std::chrono_literals;

constexpr std::uint8_t kAllreduce = 1, kBarrier = 4, kSend = 12, kRecv = 13;

// The ranks of a job, each in a state that began `age` before `now`.
class Stalls : public ::testing::Test {
 protected:
  control::RecordedCall call(std::uint8_t kind, std::uint64_t seq, const std::string& name = "") {
    control::RecordedCall c;
    c.kind = kind;
    c.seq = seq;
    c.name = name;
    c.started_ns = 1'000'000'000;
    return c;
  }
  RankProgress& add(std::chrono::seconds age) {
    RankProgress rank;
    rank.rank = static_cast<int>(ranks.size());
    rank.host = "node" + std::to_string(rank.rank / 2);
    rank.pid = 800 + rank.rank;
    rank.activity.emplace();
    rank.activity->rank = static_cast<std::uint32_t>(rank.rank);
    rank.changed = now - age;
    ranks.push_back(rank);
    return ranks.back();
  }
  void in(const control::RecordedCall& c, std::chrono::seconds age) {
    auto& rank = add(age);
    rank.activity->open = {c};
    if (c.comm == 0 && c.kind < kSend) rank.activity->world_seq = c.seq;
  }
  void after(control::RecordedCall c, std::chrono::seconds age) {
    auto& rank = add(age);
    c.ended_ns = 2'000'000'000;
    rank.activity->last = {c};
    if (c.comm == 0 && c.kind < kSend) rank.activity->world_seq = c.seq;
  }
  std::vector<Stall> find() { return find_stalls(ranks, now, 60s); }

  Deadline now = Deadline{} + 100h;
  std::vector<RankProgress> ranks;
};

TEST_F(Stalls, TheRankThatHasNotComeIsNamedWithWhatItDidLast) {
  for (int i = 0; i < 3; ++i) in(call(kAllreduce, 1284, "grad.17"), 62s);
  after(call(kBarrier, 1283), 61s);
  const auto found = find();
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].call, "allreduce #1284 'grad.17'");
  EXPECT_EQ(found[0].waiting, (std::vector<int>{0, 1, 2}));
  EXPECT_EQ(
      found[0].details,
      "ranks 0-2 have waited in it for 62 s\n"
      "rank 3 on node1 (pid 803) has not called allreduce #1284 'grad.17'; its last call was barrier #1283, which "
      "ended 61 s ago");
}

TEST_F(Stalls, NobodyStallsBeforeTheLimit) {
  in(call(kAllreduce, 2), 59s);
  after(call(kAllreduce, 1), 500s);
  EXPECT_TRUE(find().empty());
  ranks[0].changed = now - 60s;
  EXPECT_EQ(find().size(), 1u);
}

TEST_F(Stalls, RanksThatOnlyComputeDoNotStall) {
  after(call(kAllreduce, 2), 500s);
  after(call(kAllreduce, 2), 500s);
  add(500s);
  EXPECT_TRUE(find().empty());
}

TEST_F(Stalls, WhoIsAheadWaitsForTheSameRank) {
  in(call(kBarrier, 8), 70s);  // a root that finished #7 early
  in(call(kAllreduce, 7), 71s);
  after(call(kAllreduce, 6), 80s);
  after(call(kAllreduce, 7), 70s);
  const auto found = find();
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(
      found[0].details,
      "rank 1 has waited in it for 71 s\n"
      "rank 2 on node1 (pid 802) has not called allreduce #7; its last call was allreduce #6, which ended 80 s ago\n"
      "ranks 0,3 have done their part");
}

TEST_F(Stalls, MissingRanksMayBeAnywhere) {
  in(call(kAllreduce, 7), 60s);
  after(call(kAllreduce, 6), 5s);
  ranks.back().over = true;
  add(0s).activity.reset();
  add(0s);
  in(call(kRecv, 3), 9s);
  ranks.back().activity->open[0].root = 1;
  after(call(kAllreduce, 6), 5s);
  ranks.back().activity->last[0].status = -4;
  const auto found = find();
  ASSERT_EQ(found.size(), 1u);
  const std::string missing = " has not called allreduce #7; ";
  EXPECT_EQ(found[0].details,
            "rank 0 has waited in it for 60 s\n"
            "rank 1 on node0 (pid 801)" +
                missing +
                "it has ended\n"
                "rank 2 on node1 (pid 802)" +
                missing +
                "nothing is known of it: it has not called drun_init, or its libdrun has no recorder\n"
                "rank 3 on node1 (pid 803)" +
                missing +
                "it has called nothing\n"
                "rank 4 on node2 (pid 804)" +
                missing +
                "it has been in recv #3 from rank 1 for 9 s\n"
                "rank 5 on node2 (pid 805)" +
                missing + "its last call was allreduce #6, which failed 5 s ago");
}

TEST_F(Stalls, WhenAllHaveComeThatIsSaid) {
  in(call(kAllreduce, 7), 60s);
  in(call(kAllreduce, 7), 61s);
  EXPECT_EQ(find().at(0).details,
            "ranks 0-1 have waited in it for 61 s\n"
            "all ranks have called it: it is slow, or a connection or a rank hangs");
}

TEST_F(Stalls, ManyMissingRanksAreCounted) {
  in(call(kAllreduce, 7), 60s);
  for (int i = 0; i < 20; ++i) after(call(kAllreduce, 6), 60s);
  const std::string details = find().at(0).details;
  EXPECT_NE(details.find("\nrank 8 on node4"), std::string::npos);
  EXPECT_EQ(details.find("rank 9 on"), std::string::npos);
  EXPECT_NE(details.find("\nnor have 12 other ranks"), std::string::npos);
}

TEST_F(Stalls, APairIsAStallOfItsOwn) {
  in(call(kRecv, 3), 60s);
  ranks[0].activity->open[0].root = 1;
  after(call(kAllreduce, 6), 65s);
  in(call(kRecv, 3), 60s);
  ranks[2].activity->open[0].root = 99;  // a worker may write anything to its memory
  const auto found = find();
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].call, "recv #3 from rank 1");
  EXPECT_EQ(found[0].details,
            "rank 0 has waited in it for 60 s\n"
            "rank 1 on node0 (pid 801): its last call was allreduce #6, which ended 65 s ago");
  EXPECT_EQ(found[1].details, "rank 2 has waited in it for 60 s");
  EXPECT_NE(found[0].id, found[1].id);
}

TEST_F(Stalls, OfASmallerCommunicatorThoseCountThatWereInItBefore) {
  auto here = call(kAllreduce, 7), earlier = call(kAllreduce, 6), elsewhere = call(kAllreduce, 5);
  here.comm = earlier.comm = 3;
  elsewhere.comm = 3;
  elsewhere.group = 2;  // another color of the same split
  in(here, 60s);
  after(earlier, 70s);
  after(elsewhere, 70s);
  EXPECT_EQ(find().at(0).details,
            "rank 0 has waited in it for 60 s\n"
            "rank 1 on node0 (pid 801) has not called allreduce[comm 3] #7; its last call was "
            "allreduce[comm 3] #6, which ended 70 s ago");
}

TEST(CollectiveProgress, KnowsSinceWhenARankStandsWhereItDoes) {
  control::RankActivity activity;
  activity.time_ns = 5'000'000'000;
  EXPECT_FALSE(last_call(activity));
  control::RecordedCall c;
  c.kind = kAllreduce;
  c.seq = 4;
  c.comm = 2;
  c.started_ns = 1'000'000'000;
  c.ended_ns = 3'000'000'000;
  c.status = -5;
  activity.last = {c};
  auto last = last_call(activity);
  ASSERT_TRUE(last);
  EXPECT_EQ(last->text, "allreduce[cross] #4");
  EXPECT_TRUE(last->ended);
  EXPECT_EQ(last->status, -5);
  EXPECT_DOUBLE_EQ(last->seconds, 2);
  activity.open = {c};
  last = last_call(activity);
  EXPECT_FALSE(last->ended);
  EXPECT_DOUBLE_EQ(last->seconds, 4);
}

TEST(RasWords, AreTheFirstLinesOfWhatNcclSaid) {
  EXPECT_EQ(ras_words("gpu1", "NCCL version 2.28.9\n\nJob summary\n\n"),
            "NCCL on gpu1 says:\n  NCCL version 2.28.9\n  \n  Job summary");
  std::string many;
  for (int i = 1; i <= 62; ++i) many += "line " + std::to_string(i) + "\n";
  const std::string words = ras_words("gpu1", many);
  EXPECT_TRUE(words.ends_with("\n  line 60\n  and 2 more lines")) << words;
}

}  // namespace
}  // namespace drun::launcher
