#include "launcher/report/same_failure.h"

#include <gtest/gtest.h>

namespace drun::launcher {
namespace {

JobFailure failure(int rank, const std::string& line, const std::string& host = "node1") {
  JobFailure f;
  f.rank = rank;
  f.local_rank = rank % 4;
  f.pid = 1000 + rank;
  f.host = host;
  f.exit_code = f.status = 1;
  f.what = "exited with status 1";
  f.last_lines = {line};
  return f;
}

bool same(const std::string& of_rank_5, const std::string& of_rank_6) {
  return is_same_failure(failure(5, of_rank_5), failure(6, of_rank_6, "node22"));
}

TEST(SameFailure, DiffersInTheRanksOwnNumbersAtMost) {
  EXPECT_TRUE(same("ValueError: bad", "ValueError: bad"));
  EXPECT_TRUE(same("[rank5]: bad", "[rank6]: bad"));
  EXPECT_TRUE(same("rank 5, pid 1005 on cuda:1", "rank 6, pid 1006 on cuda:2"));
  EXPECT_TRUE(same("<X object at 0x7f12ab340010> on node1", "<X object at 0x55dd01234560> on node22"));
  EXPECT_FALSE(same("line 5", "line 7"));
  EXPECT_FALSE(same("line 3", "line 6"));
  EXPECT_FALSE(same("rank 5", "rank 2")) << "its local rank in the place of the other's rank";
  EXPECT_FALSE(same("rank 55", "rank 66"));
  EXPECT_FALSE(same("flags 0x5", "flags 0x6"));
  EXPECT_FALSE(same("bad", "bad, too"));
  EXPECT_FALSE(same("on node2", "on node3"));
}

TEST(SameFailure, EndsInTheSameWay) {
  const auto a = failure(5, "bad");
  auto b = failure(6, "bad");
  b.signal = 6;
  EXPECT_FALSE(is_same_failure(a, b));
  b = failure(6, "bad");
  b.own_error = "ValueError";
  EXPECT_FALSE(is_same_failure(a, b));
  b = failure(6, "bad");
  b.out_of_memory = "oom_kill 0 -> 1";
  EXPECT_FALSE(is_same_failure(a, b));
}

TEST(SameFailure, IsNotKnownOfRanksThatSaidNothingNorOfHosts) {
  auto a = failure(5, "x"), b = failure(6, "x");
  a.last_lines.clear();
  b.last_lines.clear();
  EXPECT_FALSE(is_same_failure(a, b));
  a.own_error = b.own_error = "MemoryError";
  EXPECT_TRUE(is_same_failure(a, b));
  a.rank = b.rank = -1;
  EXPECT_FALSE(is_same_failure(a, b));
}

TEST(SameFailure, OfPythonTheTracebackCounts) {
  auto a = failure(5, "step 41"), b = failure(6, "step 43");
  EXPECT_FALSE(is_same_failure(a, b));
  for (auto* f : {&a, &b}) {
    f->last_lines.push_back("Traceback (most recent call last):");
    f->last_lines.push_back("ValueError: bad");
  }
  EXPECT_TRUE(is_same_failure(a, b));
  EXPECT_FALSE(has_same_lines(a, b));
  EXPECT_TRUE(wrote_same_traceback(a, b));
  EXPECT_FALSE(wrote_same_traceback(failure(5, "bad"), failure(6, "bad")));
  EXPECT_EQ(telling_lines(a), (std::vector<std::string>{"Traceback (most recent call last):", "ValueError: bad"}));
}

TEST(SameFailure, FoldsAndKeepsTheOrder) {
  using Groups = std::vector<std::vector<std::size_t>>;
  EXPECT_EQ(same_failures({failure(2, "a"), failure(0, "b"), failure(1, "a"), failure(3, "b")}),
            (Groups{{0, 2}, {1, 3}}));
}

}  // namespace
}  // namespace drun::launcher
