#include "rendezvous/store.h"

#include <gtest/gtest.h>

#include <ctime>
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
  // The connection of rank r is session r + 10; `request` tells its requests apart. The request is of the rank's
  // current epoch.
  Asker asker(int rank, std::uint32_t request = 1) const {
    return {static_cast<std::uint64_t>(rank) + 10, rank, request, roster.epoch_of(rank)};
  }
  // Do what the server does when a connection ends, and when the rank's next program joins.
  StoreReplies leave(int rank) {
    store.forget(asker(rank).session);
    roster.leave(rank, true);
    return store.close_epochs();
  }
  StoreReplies begin_another(int rank) {
    auto out = leave(rank);
    EXPECT_TRUE(roster.join(rank, 200 + rank));
    for (auto& reply : store.close_epochs()) out.push_back(std::move(reply));
    return out;
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
    return v == nullptr ? "no value" : *v->value;
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

TEST_F(StoreTest, DeletedKeyIsGoneAndMayBeSetToAnotherValue) {
  const auto erase = [&](int rank) {
    const auto replies = store.erase(asker(rank), DeleteMessage{1, "k"});
    return replies.size() == 1 && std::get<DeletedReply>(replies[0].message).existed;
  };
  EXPECT_FALSE(erase(0));
  set(0, "k", "v");
  set(0, "kk", "v");
  EXPECT_TRUE(erase(1));
  EXPECT_FALSE(erase(1));
  EXPECT_TRUE(get(2, "k").empty());
  const auto replies = set(1, "k", "w");
  ASSERT_EQ(replies.size(), 2u);
  EXPECT_EQ(value(replies[1]), "w");
  EXPECT_TRUE(erase(0));
  EXPECT_EQ(value(get(2, "kk")[0]), "v");
}

TEST_F(StoreTest, KeyOfAnotherEpochIsNotDeleted) {
  set(1, "k", "v");
  begin_another(0);
  EXPECT_FALSE(std::get<DeletedReply>(store.erase(asker(0), DeleteMessage{1, "k"})[0].message).existed);
  EXPECT_EQ(value(get(1, "k")[0]), "v");
}

TEST_F(StoreTest, KeyPerStepThatIsDeletedNeverFillsTheStore) {
  StoreLimits limits;
  limits.bytes = 1000;
  limits.names = 2;
  Store small(roster, limits);
  for (int step = 0; step < 1000; ++step) {
    const std::string key = std::to_string(step);
    ASSERT_TRUE(is_done(small.set(asker(0), SetMessage{1, key, std::string(500, 'v'), false})));
    small.erase(asker(1), DeleteMessage{1, key});
  }
  EXPECT_EQ(small.bytes(), 0u);
}

TEST_F(StoreTest, QuotesNamesReadably) {
  set(0, "a\n\x1b[2J", "v");
  EXPECT_EQ(error_text(set(0, "a\n\x1b[2J", "w")), "key 'a ?[2J' already has another value");
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

TEST_F(StoreTest, EveryRankThatWaitsGetsTheSameCopyOfTheValue) {
  get(1, "k");
  get(2, "k");
  const auto replies = set(0, "k", std::string(100, 'v'));
  ASSERT_EQ(replies.size(), 3u);
  const auto first = std::get<ValueReply>(replies[1].message), second = std::get<ValueReply>(replies[2].message);
  EXPECT_EQ(first.value, second.value);
  EXPECT_EQ(encode_shared(replies[1].message).tail, first.value);
  EXPECT_EQ(std::get<ValueReply>(get(0, "k")[0].message).value, first.value);
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
  // No rank is in the barrier any more, so a new round begins.
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

// If each waiter walks all ranks, this takes 2 s in an optimized build, and ten times as long with a sanitizer.
TEST(StoreOfALargeJob, ExpiresABarrierAndAKeyOfManyRanksAtOnce) {
  constexpr int kRanks = 4000;
  Roster roster(std::vector<Member>(kRanks), "job");
  Store store(roster);
  for (int rank = 0; rank < kRanks; ++rank) ASSERT_TRUE(roster.join(rank, 1));
  for (int rank = 1; rank < kRanks; ++rank) {
    const Asker asker{static_cast<std::uint64_t>(rank), rank, 1, 1};
    store.barrier(asker, BarrierMessage{1, "b", 100}, StoreTime());
    store.get(asker, GetMessage{2, "k", 100}, StoreTime());
  }
  const std::clock_t begin = std::clock();
  const auto replies = store.expire(StoreTime() + 100ms);
  EXPECT_LT(std::clock() - begin, 5 * CLOCKS_PER_SEC);
  ASSERT_EQ(replies.size(), 2u * (kRanks - 1));
  EXPECT_EQ(std::get<ErrorReply>(replies.front().message).text,
            "barrier 'b' was not complete within 100 ms; missing: rank 0 on ");
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
  EXPECT_EQ(roster.absent(1), (std::vector<int>{1, 2, 3}));
  EXPECT_EQ(roster.describe(roster.absent(1), 1),
            "rank 1 on h (left), rank 2 on h (disconnected), rank 3 on h (has not joined)");
}

TEST(RosterTest, EncodesTheHostsOnce) {
  Roster roster(std::vector<Member>(3), "job");
  const SharedBytes hosts = roster.hosts();
  ASSERT_TRUE(roster.join(0, 1));
  const EncodedMessage message = encode_welcome(roster.welcome(0), roster.hosts());
  EXPECT_EQ(message.tail, hosts);
  EXPECT_TRUE(decode_server_message(message.piece(0, message.size())));
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
  EXPECT_EQ(roster.describe(ranks, 1),
            "rank 0 on h, rank 1 on h, rank 2 on h, rank 3 on h, rank 4 on h, rank 5 on h, rank 6 on h, rank 7 on h "
            "and 4 more");
  EXPECT_EQ(roster.describe(std::vector<int>{}, 1), "");
}

TEST_F(StoreTest, EpochsDoNotSeeEachOthersKeysBarriersAndIds) {
  set(0, "k", "first");
  put(0, "world", 0, 'a');
  set(1, "only here", "v");
  const std::size_t bytes_of_one = store.bytes();
  begin_another(0);
  EXPECT_EQ(roster.epoch_of(0), 2);
  EXPECT_TRUE(is_done(set(0, "k", "second")));
  EXPECT_TRUE(get(0, "only here").empty());
  EXPECT_EQ(value(get(1, "k")[0]), "first");
  EXPECT_TRUE(is_done(put(0, "world", 0, 'b')));
  EXPECT_EQ(value(nccl_get(1, "world", 0)[0]), std::string(kNcclIdBytes, 'a'));
  // The values of the first epoch are removed when the last rank has left it.
  begin_another(1);
  EXPECT_GT(store.bytes(), bytes_of_one);
  begin_another(2);
  EXPECT_EQ(roster.epoch_of(2), 2);
  EXPECT_LT(store.bytes(), bytes_of_one);
  EXPECT_EQ(value(get(2, "k")[0]), "second");
  EXPECT_EQ(value(nccl_get(2, "world", 0)[0]), std::string(kNcclIdBytes, 'b'));
  EXPECT_TRUE(is_done(put(1, "other", 0, 'a')));  // that id was the first epoch's
}

// A start is what drun_init and drun_finalize do, with keys, a barrier and an NCCL id.
TEST_F(StoreTest, DoesNotGrowWithTheNumberOfStarts) {
  std::size_t bytes_of_one = 0;
  for (int start = 0; start < 1000; ++start) {
    for (const int rank : {0, 1, 2}) ASSERT_TRUE(is_done(set(rank, "data/" + std::to_string(rank), "address")));
    for (const int rank : {0, 1, 2}) ASSERT_EQ(barrier(rank, "init").size(), rank == 2 ? 3u : 0u);
    ASSERT_TRUE(is_done(store.nccl_put(asker(0), NcclPutMessage{1, "world", 0, true, std::string(kNcclIdBytes, 'i')})));
    if (start == 0) bytes_of_one = store.bytes();
    ASSERT_EQ(store.bytes(), bytes_of_one);
    ASSERT_EQ(store.names(), 3u + 2);
    for (const int rank : {0, 1, 2}) leave(rank);
    for (const int rank : {0, 1, 2}) {
      ASSERT_TRUE(roster.join(rank, start));
      store.close_epochs();
    }
    ASSERT_EQ(roster.epoch(), start + 2);
    ASSERT_EQ(store.names(), 0u);
    ASSERT_EQ(store.waits(), 0u);
  }
}

TEST_F(StoreTest, BarrierOfAnEpochThatARankHasLeftForALaterOneFailsAtOnce) {
  EXPECT_TRUE(barrier(1, "b").empty());
  EXPECT_TRUE(leave(0).empty());  // rank 0 can come back only to a later epoch, but may never come back
  EXPECT_TRUE(roster.join(0, 7));
  const auto ended = store.close_epochs();
  ASSERT_EQ(ended.size(), 1u);
  EXPECT_EQ(ended[0].session, 11u);
  EXPECT_EQ(std::get<ErrorReply>(ended[0].message).code, Errc::kPeerFailed);
  const std::string why =
      "left behind in epoch 1: rank 0 on h0 has begun epoch 2, which is another program, or this one started again";
  EXPECT_EQ(error_text(ended), why);
  EXPECT_EQ(error_text(barrier(2, "b")), why);
  EXPECT_EQ(error_text(nccl_get(2, "world", 0)), why);
  EXPECT_TRUE(nccl_get(2, "world", 0, 1).empty());  // rank 1 may still make it
  // The programs that follow meet in the second epoch.
  EXPECT_TRUE(barrier(0, "b").empty());
  begin_another(1);
  EXPECT_TRUE(barrier(1, "b").empty());
  begin_another(2);
  EXPECT_EQ(barrier(2, "b").size(), 3u);
}

TEST_F(StoreTest, GetEndsWhenNobodyElseIsLeftInTheEpoch) {
  EXPECT_TRUE(get(1, "k").empty());
  EXPECT_TRUE(begin_another(0).empty());  // rank 2 may still set it
  const auto ended = begin_another(2);
  EXPECT_EQ(error_text(ended),
            "left behind in epoch 1: rank 0 on h0 has begun epoch 2, which is another program, or this one started "
            "again");
  EXPECT_EQ(store.waits(), 0u);
  EXPECT_EQ(error_text(get(1, "k")), error_text(ended));
}

TEST(RosterTest, RankThatComesLateIsInTheEpochOfTheOthers) {
  Roster roster(std::vector<Member>(2), "job");
  for (int attempt = 1; attempt <= 3; ++attempt) {  // as with `until ./train; do :; done`
    ASSERT_TRUE(roster.join(0, attempt));
    EXPECT_EQ(roster.welcome(0).epoch, attempt);
    roster.leave(0, false);
  }
  ASSERT_TRUE(roster.join(0, 4));
  ASSERT_TRUE(roster.join(1, 1));
  EXPECT_EQ(roster.epoch_of(1), 4);
  // Either rank may be the first of the next program. An epoch that began and ended in order is no obstacle.
  roster.leave(1, true);
  ASSERT_TRUE(roster.join(1, 2));
  roster.leave(0, true);
  ASSERT_TRUE(roster.join(0, 5));
  EXPECT_EQ(roster.epoch_of(0), 5);
  EXPECT_EQ(roster.epoch_of(1), 5);
}

TEST(RosterTest, NobodyJoinsAnEpochThatARankHasGoneFromBeforeAllWereThere) {
  Roster roster(std::vector<Member>(3), "job");
  ASSERT_TRUE(roster.join(0, 1));
  ASSERT_TRUE(roster.join(1, 1));
  roster.leave(0, false);
  ASSERT_TRUE(roster.join(2, 1));
  ASSERT_TRUE(roster.join(0, 2));
  EXPECT_EQ(roster.epoch_of(1), 1);
  EXPECT_EQ(roster.spoiler_of(1), 0);
  EXPECT_EQ(roster.spoiler_of(2), -1);
  Store store(roster);
  const auto told = store.barrier({11, 1, 1, 1}, BarrierMessage{1, "b", 1000}, StoreTime());
  ASSERT_EQ(told.size(), 1u);
  EXPECT_EQ(std::get<ErrorReply>(told[0].message).text,
            "left behind in epoch 1: rank 0 on  had gone from it before all ranks had joined");
  EXPECT_EQ(roster.epoch_of(2), 2);
  EXPECT_EQ(roster.epoch_of(0), 2);
}

TEST(RosterTest, SaysWhereARankIsThatIsNotInThisEpoch) {
  std::vector<Member> three(3);
  for (auto& m : three) m.host = "h";
  Roster roster(three, "job");
  for (const int rank : {0, 1, 2}) ASSERT_TRUE(roster.join(rank, 40 + rank));
  for (const int rank : {0, 2}) roster.leave(rank, true);
  ASSERT_TRUE(roster.join(0, 50));
  roster.note(2, "pid 9 runs");
  EXPECT_EQ(roster.describe(roster.absent(2), 2),
            "rank 1 on h (has not joined epoch 2; pid 41 is in epoch 1), rank 2 on h (has not joined epoch 2; pid 9 "
            "runs)");
  EXPECT_EQ(roster.describe(roster.absent(1), 1), "rank 0 on h (is in epoch 2), rank 2 on h (left)");
}

}  // namespace
}  // namespace drun::rendezvous
