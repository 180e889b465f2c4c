#include "rendezvous/store.h"

#include <gtest/gtest.h>

#include <string>
#include <variant>
#include <vector>

namespace drun::rendezvous {
namespace {

using namespace std::chrono_literals;

class StoreTest : public testing::Test {
 protected:
  StoreTest() {
    for (int rank = 0; rank < 3; ++rank) EXPECT_TRUE(roster.join(rank, 100 + rank));
  }
  static std::vector<Member> three() {
    std::vector<Member> out(3);
    for (int i = 0; i < 3; ++i) {
      out[static_cast<std::size_t>(i)].rank = i;
      out[static_cast<std::size_t>(i)].host = "h" + std::to_string(i);
    }
    return out;
  }
  // Rank r's connection is session r + 10; requests are told apart by number.
  static Asker asker(int rank, std::uint32_t request = 1) {
    return {static_cast<std::uint64_t>(rank) + 10, rank, request};
  }
  StoreReplies set(int rank, const std::string& key, const std::string& value, bool overwrite = false) {
    return store.set(asker(rank), SetMessage{1, key, value, overwrite});
  }
  StoreReplies get(int rank, const std::string& key, std::uint32_t ms = 1000, std::uint32_t request = 1) {
    return store.get(asker(rank, request), GetMessage{request, key, ms}, now);
  }
  StoreReplies barrier(int rank, const std::string& name, std::uint32_t ms = 1000) {
    return store.barrier(asker(rank), BarrierMessage{1, name, ms}, now);
  }
  StoreReplies put(int rank, const std::string& communicator, int attempt, char id) {
    return store.nccl_put(asker(rank), NcclPutMessage{1, communicator, attempt, true, std::string(kNcclIdBytes, id)});
  }
  StoreReplies nccl_get(int rank, const std::string& communicator, int attempt, int root = 0) {
    return store.nccl_get(asker(rank), NcclGetMessage{1, communicator, attempt, root, 1000}, now);
  }
  static bool is_done(const StoreReplies& replies) {
    return replies.size() == 1 && std::holds_alternative<DoneReply>(replies[0].message);
  }
  static std::string error_text(const StoreReplies& replies) {
    if (replies.size() != 1 || !std::holds_alternative<ErrorReply>(replies[0].message)) return "no error";
    return std::get<ErrorReply>(replies[0].message).text;
  }
  static std::string value(const StoreReply& reply) {
    const auto* v = std::get_if<ValueReply>(&reply.message);
    return v == nullptr ? "no value" : v->value;
  }

  Roster roster{three(), "job"};
  Store store{roster};
  StoreTime now{};
};

TEST_F(StoreTest, KeepsValues) {
  EXPECT_TRUE(is_done(set(0, "k", "v")));
  const auto replies = get(1, "k");
  ASSERT_EQ(replies.size(), 1u);
  EXPECT_EQ(replies[0].session, 11u);
  EXPECT_EQ(value(replies[0]), "v");
}

TEST_F(StoreTest, RefusesASecondDifferentValue) {
  EXPECT_TRUE(is_done(set(0, "k", "v")));
  EXPECT_TRUE(is_done(set(1, "k", "v")));
  EXPECT_EQ(error_text(set(1, "k", "w")), "key 'k' already has another value");
  EXPECT_TRUE(is_done(set(1, "k", "w", true)));
  EXPECT_EQ(value(get(0, "k")[0]), "w");
}

TEST_F(StoreTest, QuotesNamesReadably) {
  set(0, "a\n\x1b[2J", "v");
  EXPECT_EQ(error_text(set(0, "a\n\x1b[2J", "w")), "key 'a??[2J' already has another value");
  const std::string name(500, 'n');
  set(0, name, "v");
  EXPECT_LT(error_text(set(0, name, "w")).size(), 200u);
}

TEST_F(StoreTest, SetWakesAllThatWaitAfterItsOwnReply) {
  EXPECT_TRUE(get(1, "k").empty());
  EXPECT_TRUE(get(2, "k").empty());
  EXPECT_TRUE(get(2, "other").empty());
  const auto replies = set(0, "k", "v");
  ASSERT_EQ(replies.size(), 3u);
  EXPECT_EQ(replies[0].session, 10u);
  EXPECT_EQ(replies[1].session, 11u);
  EXPECT_EQ(value(replies[2]), "v");
  EXPECT_EQ(store.waits(), 1u);
}

TEST_F(StoreTest, ExpiresAtTheDeadlineAndNotBefore) {
  get(0, "a", 100);
  get(1, "b", 50);
  EXPECT_EQ(store.next_deadline(), now + 50ms);
  EXPECT_TRUE(store.expire(now + 49ms).empty());
  EXPECT_EQ(error_text(store.expire(now + 50ms)), "key 'b' was not set within 50 ms");
  EXPECT_EQ(store.next_deadline(), now + 100ms);
  EXPECT_EQ(store.expire(now + 1s).size(), 1u);
  EXPECT_FALSE(store.next_deadline());
  EXPECT_EQ(set(2, "a", "v").size(), 1u);
}

TEST_F(StoreTest, BarrierOpensWithTheLastRankAndCanBeUsedAgain) {
  for (int round = 0; round < 3; ++round) {
    EXPECT_TRUE(barrier(2, "b").empty());
    EXPECT_TRUE(barrier(0, "b").empty());
    EXPECT_EQ(barrier(1, "b").size(), 3u);
    EXPECT_EQ(store.waits(), 0u);
  }
}

TEST_F(StoreTest, BarriersOfDifferentNamesAreApart) {
  barrier(0, "a");
  barrier(1, "b");
  EXPECT_TRUE(barrier(2, "a").empty());
  EXPECT_EQ(store.waits(), 3u);
}

TEST_F(StoreTest, ExpiredBarrierNamesWhoIsMissingAndWhoGaveUp) {
  barrier(0, "b", 100);
  barrier(1, "b", 200);
  EXPECT_EQ(error_text(store.expire(now + 100ms)), "barrier 'b' was not complete within 100 ms; missing: rank 2 on h2");
  EXPECT_EQ(error_text(store.expire(now + 200ms)),
            "barrier 'b' was not complete within 200 ms; missing: rank 2 on h2; gave up before: rank 0 on h0");
  // Nobody is in it any more: a whole new round.
  barrier(0, "b");
  barrier(1, "b");
  EXPECT_EQ(barrier(2, "b").size(), 3u);
}

TEST_F(StoreTest, RanksWhoseDeadlineIsTheSameMomentDoNotBlameEachOther) {
  barrier(0, "b", 100);
  barrier(1, "b", 100);
  for (const auto& reply : store.expire(now + 100ms)) {
    EXPECT_EQ(std::get<ErrorReply>(reply.message).text,
              "barrier 'b' was not complete within 100 ms; missing: rank 2 on h2");
  }
}

TEST_F(StoreTest, RankTwiceInABarrierIsRefused) {
  barrier(0, "b");
  EXPECT_EQ(error_text(barrier(0, "b")), "rank 0 already waits in barrier 'b'");
  EXPECT_TRUE(barrier(1, "b").empty());
}

TEST_F(StoreTest, ForgottenSessionIsOutOfItsBarriers) {
  barrier(0, "b");
  barrier(1, "b");
  get(1, "k", 5000);
  store.forget(11);
  EXPECT_EQ(store.waits(), 1u);
  roster.leave(1, false);
  EXPECT_TRUE(barrier(2, "b", 2000).empty());
  EXPECT_EQ(set(0, "k", "v").size(), 1u);
  const auto replies = store.expire(now + 1s);
  EXPECT_EQ(error_text(replies), "barrier 'b' was not complete within 1 s; missing: rank 1 on h1 (disconnected)");
}

TEST_F(StoreTest, ForgetsUnknownSessionsQuietly) {
  store.forget(999);
  EXPECT_EQ(store.waits(), 0u);
}

TEST_F(StoreTest, NcclIdGoesToAllAndIsKeptPerAttempt) {
  EXPECT_TRUE(nccl_get(1, "world", 0).empty());
  const auto replies = put(0, "world", 0, 'a');
  ASSERT_EQ(replies.size(), 2u);
  EXPECT_EQ(value(replies[1]), std::string(kNcclIdBytes, 'a'));
  EXPECT_EQ(value(nccl_get(2, "world", 0)[0]), std::string(kNcclIdBytes, 'a'));
  EXPECT_TRUE(nccl_get(2, "world", 1).empty());
  EXPECT_TRUE(nccl_get(1, "other", 0).empty());
}

TEST_F(StoreTest, NcclIdIsNeverGivenTwice) {
  EXPECT_TRUE(is_done(put(0, "world", 0, 'a')));
  EXPECT_EQ(error_text(put(0, "world", 0, 'b')), "communicator 'world', attempt 0, already has its id, from rank 0");
  EXPECT_EQ(error_text(put(0, "world", 1, 'a')),
            "communicator 'world', attempt 1, must not have the id of communicator 'world', attempt 0");
  EXPECT_TRUE(is_done(put(0, "world", 1, 'b')));
}

TEST_F(StoreTest, RootWithoutAnIdEndsTheWaits) {
  nccl_get(1, "world", 0);
  const auto replies = store.nccl_put(asker(0), NcclPutMessage{1, "world", 0, false, "no library"});
  ASSERT_EQ(replies.size(), 2u);
  const auto error = std::get<ErrorReply>(replies[1].message);
  EXPECT_EQ(error.code, Errc::kPeerFailed);
  EXPECT_EQ(error.text, "rank 0 on h0 has no NCCL id: no library");
  EXPECT_EQ(error_text(nccl_get(2, "world", 0)), error.text);
}

TEST_F(StoreTest, RootOutsideTheJobIsRefused) {
  EXPECT_EQ(error_text(nccl_get(1, "world", 0, 3)), "the root 3 of communicator 'world' is no rank of this job");
  EXPECT_NE(error_text(nccl_get(1, "world", 0, -1)), "no error");
}

TEST_F(StoreTest, IsBoundedInBytesWaitsAndNames) {
  StoreLimits limits;
  limits.bytes = 1000;
  limits.waits_per_session = 2;
  limits.names = 3;
  Store small(roster, limits);
  const auto put_value = [&](const std::string& key, std::size_t n) {
    return small.set(asker(0), SetMessage{1, key, std::string(n, 'v'), true});
  };
  EXPECT_TRUE(is_done(put_value("a", 600)));
  EXPECT_NE(error_text(put_value("b", 600)).find("full"), std::string::npos);
  EXPECT_TRUE(is_done(put_value("a", 700)));  // in place of the old one
  EXPECT_TRUE(is_done(put_value("a", 1)));
  EXPECT_TRUE(is_done(put_value("b", 1)));
  EXPECT_TRUE(is_done(put_value("c", 1)));
  EXPECT_NE(error_text(put_value("d", 1)).find("full"), std::string::npos);
  for (std::uint32_t i = 0; i < 2; ++i) {
    EXPECT_TRUE(small.get(asker(1, i + 1), GetMessage{i + 1, "x", 1000}, now).empty());
  }
  EXPECT_EQ(error_text(small.get(asker(1, 3), GetMessage{3, "x", 1000}, now)), "too many waits at once: 2");
  EXPECT_EQ(error_text(small.barrier(asker(1, 3), BarrierMessage{3, "x", 1000}, now)), "too many waits at once: 2");
  EXPECT_TRUE(small.get(asker(2, 3), GetMessage{3, "x", 1000}, now).empty());
}

TEST(RosterTest, KnowsWhoIsNotInTheJobNow) {
  std::vector<Member> four(4);
  for (auto& m : four) m.host = "h";
  Roster roster(four, "job");
  for (const int rank : {0, 1, 2}) ASSERT_TRUE(roster.join(rank, 1));
  roster.leave(1, true);
  roster.leave(2, false);
  EXPECT_EQ(roster.joined(), std::vector<int>{0});
  EXPECT_EQ(roster.absent(), (std::vector<int>{1, 2, 3}));
  EXPECT_EQ(roster.describe(roster.absent()),
            "rank 1 on h (left), rank 2 on h (disconnected), rank 3 on h (has not joined)");
}

TEST(RosterTest, DescribesAtMostEightRanks) {
  std::vector<Member> many(12);
  for (auto& m : many) m.host = "h";
  Roster roster(many, "job");
  std::vector<int> ranks;
  for (int i = 0; i < 12; ++i) {
    ASSERT_TRUE(roster.join(i, 1));
    ranks.push_back(i);
  }
  EXPECT_EQ(roster.describe(ranks),
            "rank 0 on h, rank 1 on h, rank 2 on h, rank 3 on h, rank 4 on h, rank 5 on h, rank 6 on h, rank 7 on h "
            "and 4 more");
  EXPECT_EQ(roster.describe(std::vector<int>{}), "");
}

}  // namespace
}  // namespace drun::rendezvous
