#include "launcher/report/first_failure.h"

#include <gtest/gtest.h>
#include <signal.h>

namespace drun::launcher {
namespace {

constexpr std::int64_t kMs = 1'000'000;
constexpr std::int64_t kStop = 1000 * kMs;

JobFailure worker(int rank, const std::string& host, std::int64_t at_ms, std::int64_t error_ms = 1) {
  JobFailure f;
  f.rank = rank;
  f.host = host;
  f.exit_code = f.status = 1;
  f.what = "exited with status 1";
  f.when = control::Moment{(at_ms - error_ms) * kMs, (at_ms + error_ms) * kMs};
  return f;
}

JobFailure signaled(JobFailure f, int number) {
  f.exit_code = -1;
  f.signal = number;
  return f;
}

std::vector<int> ranks(const std::vector<JobFailure>& failures) {
  std::vector<int> out;
  for (const auto& f : failures) out.push_back(f.rank);
  return out;
}

TEST(FirstFailure, IsTheEarliest) {
  const auto found = find_first_failure({worker(0, "a", 900), worker(1, "b", 500), worker(2, "c", 700)}, kStop);
  EXPECT_EQ(ranks(found.first), std::vector<int>{1});
  EXPECT_EQ(ranks(found.consequences), (std::vector<int>{2, 0}));
}

TEST(FirstFailure, EvidenceGoesBeforeTime) {
  // Rank 0 noticed the death of rank 1, and the exit of rank 0 was seen first.
  auto victim = worker(0, "a", 500);
  victim.complaint = "rank 1 on b closed its connection during allreduce #3";
  const auto found = find_first_failure({victim, signaled(worker(1, "b", 600), SIGKILL)}, kStop);
  EXPECT_EQ(ranks(found.first), std::vector<int>{1});
  ASSERT_EQ(found.said.size(), 1u);
  EXPECT_EQ(found.said[0].ranks, std::vector<int>{0});
  EXPECT_EQ(found.said[0].text, victim.complaint);
}

TEST(FirstFailure, WordsOfNcclAndGlooCountAsBlamingAPeer) {
  for (const char* words : {"torch.distributed.DistBackendError: NCCL error ... ncclRemoteError: A call failed "
                            "possibly due to a network error",
                            "RuntimeError: [gloo/transport/tcp/pair.cc:534] Connection closed by peer [10.0.0.2]:1234",
                            "[c10d] recvValue failed: Connection reset by peer",
                            "train: allreduce #9: host b was lost: the connection to the agent ended",
                            "train: drun_init: rank 1 on b (pid 53): killed by SIGSEGV (segmentation fault)"}) {
    auto victim = worker(0, "a", 500);
    victim.last_lines = {"step 3", words};
    const auto found = find_first_failure({victim, worker(1, "b", 600)}, kStop);
    EXPECT_EQ(ranks(found.first), std::vector<int>{1}) << words;
  }
}

TEST(FirstFailure, AnAbortBecauseOfALostPeerIsNoEvidenceOfItsOwnButASegfaultIs) {
  auto aborted = signaled(worker(0, "a", 500), SIGABRT);
  aborted.complaint = "rank 1 is gone";
  EXPECT_EQ(ranks(find_first_failure({aborted, worker(1, "b", 600)}, kStop).first), std::vector<int>{1});
  auto crashed = signaled(worker(0, "a", 500), SIGSEGV);
  crashed.complaint = "rank 1 is gone";
  EXPECT_EQ(ranks(find_first_failure({crashed, worker(1, "b", 600)}, kStop).first), std::vector<int>{0});
}

TEST(FirstFailure, WhatCameAfterTheStopIsAConsequence) {
  auto late = signaled(worker(0, "a", 1500), SIGSEGV);
  auto victim = worker(1, "b", 900);
  victim.complaint = "rank 7 is gone";
  const auto found = find_first_failure({late, victim}, kStop);
  EXPECT_EQ(ranks(found.first), std::vector<int>{1});
}

TEST(FirstFailure, TheLastOneHeardOfMayBeTheFirst) {
  const auto found = find_first_failure({worker(0, "a", 990), worker(1, "b", 400)}, 995 * kMs);
  EXPECT_EQ(ranks(found.first), std::vector<int>{1});
}

TEST(FirstFailure, ClocksThatCannotTellAreReportedTogether) {
  const auto found =
      find_first_failure({worker(0, "a", 500, 20), worker(1, "b", 510, 5), worker(2, "c", 700, 5)}, kStop);
  EXPECT_EQ(ranks(found.first), (std::vector<int>{0, 1}));
  EXPECT_EQ(ranks(found.consequences), std::vector<int>{2});
  EXPECT_DOUBLE_EQ(found.uncertainty_s, 0.020);
}

TEST(FirstFailure, OneHostHasOneClock) {
  const auto found = find_first_failure({worker(0, "a", 500, 50), worker(1, "a", 510, 50)}, kStop);
  EXPECT_EQ(ranks(found.first), std::vector<int>{0});
}

TEST(FirstFailure, ALostHostIsEvidence) {
  JobFailure host;
  host.host = "b";
  host.status = 68;
  host.when = control::Moment{100 * kMs, 900 * kMs};
  auto victim = worker(0, "a", 300);
  victim.complaint = "rank 1 on b closed its connection";
  const auto found = find_first_failure({victim, host}, kStop);
  EXPECT_EQ(found.first.front().host, "b");
  EXPECT_EQ(found.first.front().name(), "host b");
}

TEST(FirstFailure, EqualWordsAreSaidOnce) {
  std::vector<JobFailure> failures = {worker(5, "z", 100)};
  for (const int rank : {3, 1, 2}) {
    auto f = worker(rank, "a", 500 + rank * 10);
    f.last_lines = {"RuntimeError: Connection closed by peer", "", "bye"};
    failures.push_back(f);
  }
  const auto found = find_first_failure(failures, kStop);
  ASSERT_EQ(found.said.size(), 1u);
  EXPECT_EQ(found.said[0].ranks, (std::vector<int>{1, 2, 3}));
  EXPECT_EQ(found.said[0].text, "RuntimeError: Connection closed by peer");
}

TEST(FirstFailure, TheTellingLineIsTheLastThatLooksLikeAnError) {
  EXPECT_EQ(telling_line({"ValueError: x", "cleaning up"}), "ValueError: x");
  EXPECT_EQ(telling_line({"one", "two "}), "two");
  EXPECT_EQ(telling_line({}), "");
}

TEST(FirstFailure, ReadsTorchErrorFiles) {
  EXPECT_EQ(torch_error(R"({"message": {"message": "ValueError: no", "extraInfo": {"timestamp": "1"}}})"),
            "ValueError: no");
  EXPECT_EQ(torch_error(R"({"message": "plain"})"), "plain");
  for (const char* other : {"", "{", "[]", "{}", R"({"message": 3})", R"({"message": {"message": null}})"}) {
    EXPECT_EQ(torch_error(other), "") << other;
  }
}

}  // namespace
}  // namespace drun::launcher
