#include "launcher/run/job_state.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <cerrno>

#include "base/exit_status.h"

namespace drun::launcher {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr int kSigkill = SIGKILL, kStatus3 = 3 << 8;

// Two hosts with two ranks each: 0 and 1 on node0, 2 and 3 on node1. The job has begun, and its ranks run.
class JobStateTest : public ::testing::Test {
 protected:
  JobStateTest() : state_(seconds(5), [this] { return joined_; }) { state_.place(placement(), {"node0", "node1"}); }

  static Placement placement() {
    Placement out;
    out.size = 4;
    for (int rank = 0; rank < 4; ++rank) {
      RankPlace place;
      place.rank = rank;
      place.host = rank / 2;
      place.local_rank = rank % 2;
      out.ranks.push_back(place);
    }
    out.local_sizes = {2, 2};
    return out;
  }

  // The moment so long after the beginning.
  static JobTime at(milliseconds time) {
    return JobTime{Deadline(seconds(1000) + time), std::chrono::nanoseconds(seconds(5000) + time).count()};
  }

  void begin() {
    ASSERT_TRUE(state_.activate(at(milliseconds(0))));
    for (std::uint32_t rank = 0; rank < 4; ++rank) start(rank);
    state_.take_actions();
  }
  void start(std::uint32_t rank, int error = 0, const std::string& what = "") {
    control::Started m;
    m.rank = rank;
    m.pid = 100 + static_cast<int>(rank);
    m.error = error;
    m.what = what;
    state_.started(m, at(milliseconds(10)));
  }
  void exit(std::uint32_t rank, int wait_status, milliseconds time = milliseconds(1000), bool by_drun = false) {
    control::Exited m;
    m.rank = rank;
    m.pid = 100 + static_cast<int>(rank);
    m.wait_status = wait_status;
    m.ended_by_drun = by_drun;
    state_.exited(m, std::nullopt, at(time));
  }
  // Its process and both of its outputs.
  void end(std::uint32_t rank, int wait_status, milliseconds time = milliseconds(1000), bool by_drun = false) {
    exit(rank, wait_status, time, by_drun);
    drain(rank, time);
  }
  void drain(std::uint32_t rank, milliseconds time = milliseconds(1000)) {
    for (int i = 0; i < 2; ++i) state_.output_ended(static_cast<int>(rank), at(time));
  }
  void finish(std::size_t host, std::uint32_t leftovers = 0, milliseconds time = milliseconds(1100)) {
    control::Finished m;
    m.leftovers = leftovers;
    m.leftover_name = leftovers > 0 ? "redis" : "";
    state_.finished(host, m, at(time));
  }
  void lose(std::size_t host, milliseconds time = milliseconds(1000)) {
    state_.lost(host, Error(Errc::kUnreachable, "node", "the connection ended").with_context("killed by signal 9"),
                std::nullopt, at(time));
  }

  template <typename T>
  std::vector<T> taken() {
    std::vector<T> out;
    for (auto& action : state_.take_actions()) {
      if (auto* one = std::get_if<T>(&action)) out.push_back(std::move(*one));
    }
    return out;
  }

  std::vector<int> joined_;
  JobState state_;
};

TEST_F(JobStateTest, AGoodJobEndsWithoutGraceAndAbortOnceAllRanksAreOver) {
  begin();
  for (std::uint32_t rank = 0; rank < 3; ++rank) end(rank, 0);
  EXPECT_FALSE(state_.stopping());
  end(3, 0);
  EXPECT_TRUE(state_.stopping());
  std::vector<std::uint32_t> grace;
  for (const auto& action : state_.take_actions()) {
    EXPECT_FALSE(std::holds_alternative<AbortRanks>(action));
    if (const auto* stop = std::get_if<SendStop>(&action)) grace.push_back(stop->order.grace_ms);
  }
  EXPECT_THAT(grace, ElementsAre(0u, 0u));
  finish(0);
  EXPECT_FALSE(state_.over());
  finish(1);
  EXPECT_TRUE(state_.over());
  state_.conclude();
  EXPECT_EQ(state_.status(), 0);
  EXPECT_EQ(state_.report().why, "");
  EXPECT_FALSE(state_.first_failure());
}

TEST_F(JobStateTest, ARankIsOverWhenItsOutputHasEndedToo) {
  begin();
  for (std::uint32_t rank = 0; rank < 4; ++rank) exit(rank, 0);
  EXPECT_EQ(state_.ranks().n_running(), 0u);
  EXPECT_FALSE(state_.stopping());
  for (std::uint32_t rank = 0; rank < 3; ++rank) drain(rank);
  EXPECT_FALSE(state_.stopping());
  state_.output_ended(3, at(seconds(2)));
  EXPECT_FALSE(state_.stopping()) << "stderr is still open";
  state_.output_ended(3, at(seconds(2)));
  EXPECT_TRUE(state_.stopping());
}

TEST_F(JobStateTest, TheFirstFailureEndsTheJobAndRanksThatJoinedHearItFirst) {
  begin();
  joined_ = {1, 2, 3};
  exit(1, kStatus3);
  std::vector<std::string> order;
  std::vector<control::Stop> stops;
  for (const auto& action : state_.take_actions()) {
    if (const auto* abort = std::get_if<AbortRanks>(&action)) {
      order.push_back("abort");
      EXPECT_EQ(abort->rank, 1);
      EXPECT_EQ(abort->host, "node0");
      EXPECT_EQ(abort->pid, 101);
      EXPECT_EQ(abort->why, "exited with status 3");
    }
    if (const auto* stop = std::get_if<StopOrdered>(&action)) {
      order.push_back("event");
      EXPECT_EQ(stop->status, 3);
      EXPECT_EQ(stop->why, "rank 1 on node0 (pid 101) exited with status 3");
    }
    if (const auto* stop = std::get_if<SendStop>(&action)) {
      order.push_back("stop");
      EXPECT_EQ(stop->host, stops.size());
      stops.push_back(stop->order);
    }
  }
  EXPECT_THAT(order, ElementsAre("abort", "event", "stop", "stop"));
  ASSERT_EQ(stops.size(), 2u);
  EXPECT_THAT(stops[0].delayed, IsEmpty()) << "rank 1 is gone, rank 0 has not joined";
  EXPECT_THAT(stops[1].delayed, ElementsAre(2u, 3u));
  EXPECT_EQ(stops[1].delay_ms, 1000u);
  EXPECT_EQ(stops[1].grace_ms, 5000u);
  // ABORT's lead, the grace, and 10 s for the agents.
  state_.time_passed(at(milliseconds(2000)));  // the notice
  EXPECT_EQ(state_.wake_at(), at(milliseconds(1000 + 1000 + 5000 + 10000)).now);
}

TEST_F(JobStateTest, TheStatusIsThatOfTheFailureThatCameFirstByTheClocks) {
  begin();
  control::Exited late, early;
  late.rank = 3;
  late.wait_status = kSigkill;
  early.rank = 0;
  early.wait_status = kStatus3;
  state_.exited(late, control::Moment{2'000, 2'100}, at(milliseconds(1000)));
  state_.exited(early, control::Moment{1'000, 1'100}, at(milliseconds(1001)));
  for (std::uint32_t rank : {0u, 3u}) drain(rank);
  for (std::uint32_t rank : {1u, 2u}) end(rank, SIGTERM, milliseconds(1500), true);
  finish(0);
  finish(1);
  ASSERT_TRUE(state_.over());
  state_.conclude();
  EXPECT_EQ(state_.first_failure()->first.front().rank, 0);
  EXPECT_EQ(state_.status(), 3);
  EXPECT_EQ(state_.report().n_ended_by_drun, 2);
}

TEST_F(JobStateTest, EndsHaveTheStatusThatAShellGivesThem) {
  const struct {
    int wait_status;
    int status;
    const char* what;
  } cases[] = {{kStatus3, 3, "exited with status 3"}, {kSigkill, 137, "SIGKILL"}, {SIGSEGV | 0x80, 139, "core dumped"}};
  for (const auto& c : cases) {
    JobState state(seconds(5), [] { return std::vector<int>(); });
    state.place(placement(), {"node0", "node1"});
    ASSERT_TRUE(state.activate(at(milliseconds(0))));
    control::Exited m;
    m.rank = 2;
    m.wait_status = c.wait_status;
    state.exited(m, std::nullopt, at(seconds(1)));
    state.conclude();
    EXPECT_EQ(state.status(), c.status);
    EXPECT_THAT(state.first_failure()->first.front().what, HasSubstr(c.what));
  }
}

TEST_F(JobStateTest, AWaitStatusThatIsNoEndIsAFailure) {
  constexpr int kStopped = 0x7f;
  begin();
  end(1, kStopped);
  state_.conclude();
  EXPECT_EQ(state_.status(), 1);
}

TEST_F(JobStateTest, AProgramThatCanNotBeStartedIsAFailureWithItsOwnStatus) {
  for (const auto& [error, status] : {std::pair{ENOENT, 127}, std::pair{EACCES, 126}}) {
    JobState state(seconds(5), [] { return std::vector<int>(); });
    state.place(placement(), {"node0", "node1"});
    ASSERT_TRUE(state.activate(at(milliseconds(0))));
    control::Started m;
    m.rank = 2;
    m.error = error;
    m.what = "execve failed";
    state.started(m, at(milliseconds(10)));
    EXPECT_TRUE(state.ranks().at(2).over);
    EXPECT_TRUE(state.stopping());
    state.conclude();
    EXPECT_EQ(state.status(), status);
    EXPECT_EQ(state.first_failure()->first.front().what, "execve failed");
  }
}

TEST_F(JobStateTest, ALostHostEndsTheJobAndItsRanksAreOver) {
  begin();
  lose(1);
  const auto aborts = taken<AbortRanks>();
  ASSERT_EQ(aborts.size(), 1u);
  EXPECT_EQ(aborts[0].rank, -1);
  EXPECT_EQ(aborts[0].why, "host node1 was lost: the connection ended");
  EXPECT_TRUE(state_.ranks().all_over(1));
  EXPECT_FALSE(state_.ranks().all_over(0));
  EXPECT_THAT(state_.unfinished_hosts(), ElementsAre("node0"));
  for (std::uint32_t rank : {0u, 1u}) end(rank, SIGTERM, milliseconds(1500), true);
  finish(0);
  ASSERT_TRUE(state_.over());
  state_.conclude();
  EXPECT_EQ(state_.status(), kExitUnreachable);
  const auto& failure = state_.first_failure()->first.front();
  EXPECT_EQ(failure.host, "node1");
  EXPECT_THAT(failure.details, ElementsAre("killed by signal 9"));
}

TEST_F(JobStateTest, AHostThatIsLostInSilenceMayHaveFailedSinceItsLastSignOfLife) {
  begin();
  const Deadline heard = at(seconds(10)).now;
  state_.lost(1, Error(Errc::kTimeout, "node1", "silent for 30 s"), heard, at(seconds(40)));
  state_.conclude();
  const auto when = state_.first_failure()->first.front().when;
  EXPECT_EQ(when.earliest_ns, at(seconds(10)).ns);
  EXPECT_EQ(when.latest_ns, at(seconds(40)).ns);
}

TEST_F(JobStateTest, AHostThatIsLostBeforeTheStartIsTheErrorOfTheStart) {
  lose(1);
  EXPECT_THAT(taken<StopOrdered>(), IsEmpty());
  const auto active = state_.activate(at(milliseconds(0)));
  ASSERT_FALSE(active);
  EXPECT_EQ(active.error().cause, "the connection ended");
}

TEST_F(JobStateTest, AnAgentThatFinishesBeforeTheStartIsAnErrorToo) {
  finish(1);
  const auto active = state_.activate(at(milliseconds(0)));
  ASSERT_FALSE(active);
  EXPECT_EQ(active.error().subject, "node1");
}

TEST_F(JobStateTest, WhatIsKnownOfAHostGoesWithItWhenRanksAreGivenOutAgain) {
  lose(1);
  state_.place(placement(), {"node1", "node0"}, {1, 0});
  EXPECT_THAT(state_.unfinished_hosts(), ElementsAre("node0"));
  EXPECT_EQ(state_.ranks().host_name(0), "node1");
}

TEST_F(JobStateTest, AnAgentThatEndsItsWorkersWithoutAnOrderIsTheFailure) {
  begin();
  exit(2, SIGTERM, milliseconds(1000), true);
  ASSERT_TRUE(state_.stopping());
  state_.conclude();
  EXPECT_EQ(state_.status(), kExitUnreachable);
  EXPECT_EQ(state_.first_failure()->first.front().what, "the agent was ended from outside, and its workers with it");
}

TEST_F(JobStateTest, AGoodEndNeedsAllOutput) {
  begin();
  for (std::uint32_t rank = 0; rank < 4; ++rank) exit(rank, 0);
  for (std::uint32_t rank : {0u, 1u, 2u}) drain(rank);
  state_.stop(0, "the job is over", at(seconds(1)));
  finish(0);
  finish(1);
  EXPECT_FALSE(state_.over()) << "the output of rank 3 is on its way";
  state_.take_actions();
  lose(1);
  EXPECT_TRUE(state_.over());
  state_.conclude();
  EXPECT_EQ(state_.status(), kExitUnreachable);
  const auto said = taken<Say>();
  ASSERT_EQ(said.size(), 1u);
  EXPECT_TRUE(said[0].is_warning);
  EXPECT_THAT(said[0].text, HasSubstr("host node1 was lost before all of its workers' output had come"));
}

TEST_F(JobStateTest, AHostThatIsLostAfterAllOfItsOutputIsNoFailure) {
  begin();
  for (std::uint32_t rank = 0; rank < 4; ++rank) end(rank, 0);
  finish(0);
  finish(1);
  lose(1);
  state_.conclude();
  EXPECT_EQ(state_.status(), 0);
  EXPECT_THAT(taken<Say>(), IsEmpty());
}

TEST_F(JobStateTest, AHostThatIsLostAfterAGoodEndDoesNotSayThatItsProcessesAreGone) {
  begin();
  for (std::uint32_t rank = 0; rank < 4; ++rank) end(rank, 0);
  finish(0);
  lose(1);
  state_.conclude();
  EXPECT_EQ(state_.status(), kExitTimeout);
  EXPECT_FALSE(state_.first_failure());
  EXPECT_THAT(state_.report().why, HasSubstr("node1 was lost"));
  EXPECT_EQ(taken<Say>().size(), 1u);
}

TEST_F(JobStateTest, AnInterruptEndsTheJobWithItsStatusWhateverItsRanksDo) {
  begin();
  state_.stop(kExitSignal + SIGINT, "drun got SIGINT", at(seconds(1)));
  const auto aborts = taken<AbortRanks>();
  ASSERT_EQ(aborts.size(), 1u);
  EXPECT_EQ(aborts[0].why, "drun got SIGINT");
  state_.stop(kExitTimeout, "too late", at(seconds(2)));
  exit(0, kStatus3, seconds(2));
  EXPECT_THAT(taken<StopOrdered>(), IsEmpty());
  state_.conclude();
  EXPECT_EQ(state_.status(), 130);
  EXPECT_EQ(state_.report().why, "drun got SIGINT");
  EXPECT_FALSE(state_.first_failure());
}

TEST_F(JobStateTest, AKillHasNoGraceAndNoLeadAndAnEarlierDeadline) {
  begin();
  joined_ = {0, 1, 2, 3};
  state_.stop(kExitSignal + SIGINT, "drun got SIGINT", at(seconds(1)));
  state_.take_actions();
  state_.stop_now(at(seconds(2)));
  const auto stops = taken<SendStop>();
  ASSERT_EQ(stops.size(), 2u);
  for (const auto& stop : stops) {
    EXPECT_EQ(stop.order.grace_ms, 0u);
    EXPECT_THAT(stop.order.delayed, IsEmpty());
  }
  state_.time_passed(at(seconds(3)));
  EXPECT_EQ(state_.wake_at(), at(seconds(12)).now);
}

TEST_F(JobStateTest, AKillOfARunningJobIsAnInterrupt) {
  begin();
  state_.stop_now(at(seconds(1)));
  state_.conclude();
  EXPECT_EQ(state_.status(), 130);
}

TEST_F(JobStateTest, AgentsThatDoNotFinishAreGivenUpAtTheDeadlineAndNamed) {
  begin();
  state_.stop(kExitTimeout, "the job took too long", at(seconds(1)));
  finish(0);
  state_.time_passed(at(seconds(15)));
  EXPECT_FALSE(state_.over());
  state_.time_passed(at(seconds(16)));  // 1 + 5 of grace + 10; no rank joined
  EXPECT_TRUE(state_.over());
  EXPECT_THAT(state_.unfinished_hosts(), ElementsAre("node1"));
}

TEST_F(JobStateTest, WithoutTheWordOfEveryAgentAJobIsNoSuccess) {
  begin();
  for (std::uint32_t rank = 0; rank < 4; ++rank) end(rank, 0);
  finish(0);
  state_.time_passed(at(seconds(60)));
  ASSERT_TRUE(state_.over());
  state_.conclude();
  EXPECT_EQ(state_.status(), kExitTimeout);
  EXPECT_EQ(state_.report().why, "node1 did not confirm that all its workers have ended");
}

TEST_F(JobStateTest, AFailureIsTheStatusThoughAnAgentSaysNothing) {
  begin();
  end(0, kStatus3);
  for (std::uint32_t rank = 1; rank < 4; ++rank) end(rank, SIGTERM, milliseconds(1500), true);
  finish(0);
  state_.time_passed(at(seconds(60)));
  ASSERT_TRUE(state_.over());
  state_.conclude();
  EXPECT_EQ(state_.status(), 3);
}

TEST_F(JobStateTest, OutputThatIsReadSlowlyHasNoDeadline) {
  begin();
  for (std::uint32_t rank = 0; rank < 4; ++rank) exit(rank, 0);
  state_.stop(0, "the job is over", at(seconds(1)));
  finish(0);
  finish(1);
  state_.time_passed(at(seconds(1000)));
  EXPECT_FALSE(state_.over());
  for (std::uint32_t rank = 0; rank < 4; ++rank) drain(rank, seconds(1001));
  EXPECT_TRUE(state_.over());
}

TEST_F(JobStateTest, AnEndThatTakesLongerThanASecondIsExplainedOnce) {
  begin();
  end(1, kStatus3);
  state_.take_actions();
  EXPECT_EQ(state_.wake_at(), at(milliseconds(2000)).now);
  state_.time_passed(at(milliseconds(1999)));
  EXPECT_THAT(taken<Say>(), IsEmpty());
  state_.time_passed(at(milliseconds(2000)));
  const auto said = taken<Say>();
  ASSERT_EQ(said.size(), 1u);
  EXPECT_EQ(said[0].text,
            "rank 1 on node0 (pid 101) exited with status 3; waiting for 3 other workers to end (KILL after 5 s)");
  EXPECT_FALSE(said[0].is_warning);
  state_.time_passed(at(milliseconds(3000)));
  EXPECT_THAT(taken<Say>(), IsEmpty());
}

TEST_F(JobStateTest, ARankThatAskedForAnAbortAndExitsIsOneFailure) {
  begin();
  state_.abort_requested(2, "loss is nan", at(seconds(1)));
  exit(2, kStatus3, milliseconds(1100));
  state_.conclude();
  ASSERT_EQ(state_.first_failure()->first.size(), 1u);
  EXPECT_THAT(state_.first_failure()->consequences, IsEmpty());
  EXPECT_EQ(state_.first_failure()->first[0].what, "called abort: loss is nan");
  EXPECT_EQ(state_.status(), 1);
}

TEST_F(JobStateTest, ComplaintsAreThoseOfTheProgramThatRan) {
  begin();
  state_.joined(2);
  state_.complained(2, "rank 0 is gone");
  state_.joined(2);  // the next program
  exit(2, kStatus3);
  exit(3, kStatus3);
  state_.complained(3, "rank 2 is gone");
  state_.complained(3, "rank 1 is gone");
  state_.complained(99, "who?");
  state_.conclude();
  std::vector<std::string> complaints;
  for (const auto& f : state_.first_failure()->first) complaints.push_back(f.complaint);
  for (const auto& f : state_.first_failure()->consequences) complaints.push_back(f.complaint);
  EXPECT_THAT(complaints, ElementsAre("", "rank 2 is gone"));
}

TEST_F(JobStateTest, OutputThatCanNotBeWrittenEndsARunningJob) {
  begin();
  EXPECT_TRUE(state_.output_broken(kExitSignal + SIGPIPE, at(seconds(1))));
  EXPECT_TRUE(state_.stopping());
  state_.conclude();
  EXPECT_EQ(state_.status(), 141);
  EXPECT_EQ(state_.report().why, "drun's output was closed");
}

TEST_F(JobStateTest, OutputThatCanNotBeWrittenSpoilsAGoodEndButReplacesNoFailure) {
  begin();
  for (std::uint32_t rank = 0; rank < 4; ++rank) end(rank, 0);
  EXPECT_TRUE(state_.output_broken(kExitUnreachable, at(seconds(1))));
  EXPECT_EQ(state_.status(), kExitUnreachable);
  EXPECT_FALSE(state_.output_broken(kExitTimeout, at(seconds(1))));

  JobState failed(seconds(5), [] { return std::vector<int>(); });
  failed.place(placement(), {"node0", "node1"});
  ASSERT_TRUE(failed.activate(at(milliseconds(0))));
  control::Exited m;
  m.rank = 0;
  m.wait_status = kStatus3;
  failed.exited(m, std::nullopt, at(seconds(1)));
  EXPECT_FALSE(failed.output_broken(kExitUnreachable, at(seconds(1))));
}

TEST_F(JobStateTest, StdinIsOverForARankThatHasExitedOrIsLost) {
  begin();
  exit(1, 0);
  lose(1);
  std::vector<int> ranks;
  for (const auto& one : taken<StdinOver>()) ranks.push_back(one.rank);
  EXPECT_THAT(ranks, ElementsAre(1, 2, 3));
}

TEST_F(JobStateTest, ProcessesLeftInTheBackgroundAreToldAfterAGoodEndOnly) {
  begin();
  for (std::uint32_t rank = 0; rank < 4; ++rank) end(rank, 0);
  finish(0);
  finish(1, 2);
  state_.conclude();
  const auto said = taken<Say>();
  ASSERT_EQ(said.size(), 1u);
  EXPECT_THAT(said[0].text, HasSubstr("redis"));
  EXPECT_FALSE(said[0].is_warning);
}

TEST_F(JobStateTest, AProgramThatDoesNotStartInTimeIsATimeout) {
  ASSERT_TRUE(state_.activate(at(milliseconds(0))));
  start(0, ETIMEDOUT, "execute /nfs/train: process 100 has not done it within 59 s");
  finish(0);
  finish(1);
  state_.conclude();
  EXPECT_EQ(state_.status(), 75);
  ASSERT_TRUE(state_.first_failure());
  EXPECT_THAT(state_.first_failure()->first.front().what, HasSubstr("has not done it within 59 s"));
}

TEST_F(JobStateTest, AProcessThatCanNotDieIsNamedAndSpoilsAGoodEndOnly) {
  begin();
  for (std::uint32_t rank = 0; rank < 4; ++rank) end(rank, 0);
  control::Finished m;
  m.stuck = {"pid 7 (train), a process of another user"};
  state_.take_actions();
  state_.finished(0, m, at(seconds(2)));
  const auto said = taken<Say>();
  ASSERT_EQ(said.size(), 1u);
  EXPECT_TRUE(said[0].is_warning);
  EXPECT_THAT(said[0].text, HasSubstr("node0: still there after KILL: pid 7 (train), a process of another user"));
  finish(1);
  EXPECT_TRUE(state_.over());
  state_.conclude();
  EXPECT_EQ(state_.status(), 75);
}

TEST_F(JobStateTest, AProcessThatCanNotDieReplacesNoFailure) {
  begin();
  end(2, kStatus3);
  control::Finished m;
  m.stuck = {"pid 7 (train)"};
  state_.finished(0, m, at(seconds(2)));
  finish(1);
  state_.conclude();
  EXPECT_EQ(state_.status(), 3);
}

TEST_F(JobStateTest, RanksThatWroteTheSameTracebackAreNamedWithTheFirst) {
  begin();
  const std::string traceback =
      "Traceback (most recent call last):\n  File \"train.py\", line 3, in <module>\nValueError: no data\n";
  for (const std::uint32_t rank : {0u, 2u}) {
    control::Output m;
    m.rank = rank;
    m.stream = control::Stream::kStderr;
    m.bytes = traceback;
    state_.wrote(m);
  }
  end(0, 1 << 8);
  end(2, SIGTERM, milliseconds(1010), true);
  end(3, SIGTERM, milliseconds(1010), true);
  state_.conclude();
  EXPECT_THAT(state_.first_failure()->wrote_the_same, ElementsAre(2));
}

TEST_F(JobStateTest, MessagesOfUnknownRanksAndBeforeTheStartChangeNothing) {
  exit(0, kStatus3);
  start(1, ENOENT, "no such file");
  EXPECT_FALSE(state_.stopping());
  begin();
  exit(17, kStatus3);
  state_.output_ended(17, at(seconds(1)));
  state_.output_ended(-1, at(seconds(1)));
  state_.abort_requested(17, "why", at(seconds(1)));
  EXPECT_FALSE(state_.stopping());
  EXPECT_THAT(state_.take_actions(), IsEmpty());
}

TEST_F(JobStateTest, TheReportHasEveryRank) {
  begin();
  end(0, 0, milliseconds(1510));
  exit(1, SIGTERM, milliseconds(2010), true);
  const JobReport report = state_.report();
  ASSERT_EQ(report.ranks.size(), 4u);
  EXPECT_EQ(report.ranks[0].wait_status, 0);
  EXPECT_DOUBLE_EQ(*report.ranks[0].seconds, 1.5);
  EXPECT_TRUE(report.ranks[1].ended_by_drun);
  EXPECT_FALSE(report.ranks[2].wait_status);
  EXPECT_FALSE(report.ranks[2].seconds);
  EXPECT_EQ(report.ranks[3].pid, 103);
  EXPECT_EQ(report.ranks[3].host, "node1");
  EXPECT_THAT(report.hosts, ElementsAre("node0", "node1"));
}

}  // namespace
}  // namespace drun::launcher
