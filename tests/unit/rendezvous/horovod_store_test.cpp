#include "rendezvous/horovod_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace drun::rendezvous {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;

SharedBytes bytes(std::string text) { return std::make_shared<const std::string>(std::move(text)); }

std::string value(const HorovodStore& store, const std::string& scope, const std::string& key) {
  const SharedBytes found = store.get(scope, key);
  return found ? *found : "(none)";
}

TEST(HorovodStore, ReturnsTheLastValueAsItWasPut) {
  HorovodStore store({});
  const std::string binary("\0\r\n\xff", 4);
  EXPECT_TRUE(store.put("global", "0", bytes("old")));
  EXPECT_TRUE(store.put("global", "0", bytes(binary)));
  EXPECT_TRUE(store.put("global", "1", bytes("")));
  EXPECT_EQ(value(store, "global", "0"), binary);
  EXPECT_EQ(value(store, "global", "1"), "");
  EXPECT_EQ(value(store, "global", "2"), "(none)");
  EXPECT_EQ(value(store, "local_a", "0"), "(none)");
  EXPECT_EQ(store.keys(), 2U);
}

TEST(HorovodStore, KeepsAPlannedScopeUntilAllItsRanksHaveFinished) {
  HorovodStore store({{"global", 2}, {"cross_0", 2}});
  for (const char* key : {"rank_0", "0", "rank_1", "1"}) store.put("global", key, bytes(key));
  store.put("cross_0", "0", bytes("other"));
  store.finish("global", "0");
  store.finish("global", "0");  // its client got no answer, and repeats it
  store.finish("global", "7");  // no rank of the scope
  EXPECT_EQ(value(store, "global", "0"), "0");
  EXPECT_EQ(value(store, "global", "1"), "1");
  store.finish("global", "1");
  EXPECT_EQ(value(store, "global", "0"), "(none)");
  EXPECT_EQ(value(store, "global", "rank_1"), "(none)");
  EXPECT_EQ(value(store, "cross_0", "0"), "other");
  store.finish("global", "1");  // repeated after that
  // The next start has to finish anew.
  for (const char* key : {"0", "1"}) store.put("global", key, bytes("new"));
  store.finish("global", "1");
  EXPECT_EQ(value(store, "global", "0"), "new");
}

TEST(HorovodStore, DropsTheValuesOfARankThatLeavesAnotherScope) {
  HorovodStore store({{"global", 2}});
  const std::string scope = "global_process_set_hash_1f";
  for (const char* key : {"rank_0", "0", "rank_1", "1"}) store.put(scope, key, bytes(key));
  store.finish(scope, "0");
  EXPECT_EQ(value(store, scope, "0"), "(none)");
  EXPECT_EQ(value(store, scope, "rank_0"), "(none)");
  EXPECT_EQ(value(store, scope, "1"), "1");
  store.finish(scope, "1");
  store.finish(scope, "1");
  EXPECT_EQ(store.keys(), 0U);
  EXPECT_EQ(store.bytes(), 0U);
}

TEST(HorovodStore, RefusesWhatIsBeyondItsLimits) {
  HorovodStore store({}, {20, 2});
  EXPECT_TRUE(store.put("s", "a", bytes(std::string(10, 'x'))));   // 12 of 20 bytes
  EXPECT_FALSE(store.put("s", "b", bytes(std::string(10, 'x'))));  // 24
  EXPECT_EQ(value(store, "s", "b"), "(none)");
  EXPECT_TRUE(store.put("s", "a", bytes(std::string(18, 'x'))));  // in the place of the first
  EXPECT_FALSE(store.put("s", "a", bytes(std::string(19, 'x'))));
  EXPECT_EQ(store.bytes(), 20U);
  store.finish("s", "a");
  EXPECT_TRUE(store.put("s", "a", bytes("")));
  EXPECT_TRUE(store.put("s", "b", bytes("")));
  EXPECT_FALSE(store.put("s", "c", bytes("")));
  EXPECT_EQ(store.keys(), 2U);
}

Member member(int rank, int host, int local_rank, int local_size, int cross_size) {
  Member m;
  m.rank = rank;
  m.host_index = host;
  m.local_rank = local_rank;
  m.local_size = local_size;
  m.cross_size = cross_size;
  return m;
}

TEST(HorovodScopes, HaveTheSizesOfThePlacement) {
  const std::vector<Member> members = {member(0, 0, 0, 2, 2), member(1, 0, 1, 2, 1), member(2, 1, 0, 1, 2)};
  EXPECT_THAT(
      horovod_scopes(members, {"a", "b"}),
      ElementsAre(Pair("cross_0", 2), Pair("cross_1", 1), Pair("global", 3), Pair("local_a", 2), Pair("local_b", 1)));
}

TEST(HorovodHostNames, FitIntoAPathAndDiffer) {
  EXPECT_THAT(horovod_host_names({"node-01.example.org", "fd00::2", "a/b#c d", "a_b_c_d", "node-01.example.org"}),
              ElementsAre("node-01.example.org", "fd00__2", "a_b_c_d", "a_b_c_d-1", "node-01.example.org-1"));
}

}  // namespace
}  // namespace drun::rendezvous
