// A job's supervision over control channels: the agents are fakes, and so is the time.
#include "launcher/run/supervisor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include "base/exit_status.h"
#include "launcher/run/collective_progress.h"
#include "launcher/run/job_timeout.h"
#include "launcher/run/join_tracker.h"
#include "launcher/run/stall_report.h"
#include "tests/fakes/fake_channel.h"
#include "tests/fakes/recording_reporter.h"
#include "tests/fakes/virtual_time.h"
#include "tests/hostile_text.h"

namespace drun::launcher {
namespace {

using control::Type;
using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class FakeServer : public rendezvous::Server {
 public:
  Result<int> listen(const std::string&) override { return 0; }
  void adopt(asio::generic::stream_protocol::socket socket) override {
    socket.non_blocking(true);
    adopted.push_back(std::move(socket));
  }
  void abort(const rendezvous::Abort& reason) override { aborts.push_back(reason); }
  void note(int rank, std::string text) override { notes[rank] = std::move(text); }
  std::vector<int> joined() const override { return members; }
  void stop() override {}
  Task<void> join() override { co_return; }

  std::vector<asio::generic::stream_protocol::socket> adopted;
  std::vector<rendezvous::Abort> aborts;
  std::map<int, std::string> notes;
  std::vector<int> members;
};

constexpr std::size_t kCredit = 4096;
constexpr int kHosts = 3, kRanksPerHost = 2, kRanks = kHosts * kRanksPerHost;

// Three hosts with two ranks each. The agents do what the test says.
class SupervisorTest : public ::testing::Test {
 protected:
  SupervisorTest()
      : output_(
            io_, OutputOptions(), [](int, control::Stream, std::size_t) {}, [](const Error&) {}),
        events_(reporter_),
        watch_(io_, reporter_, events_),
        supervisor_(io_, reporter_, seconds(5)),
        joins_(io_, reporter_, supervisor_, watch_, events_),
        activity_(supervisor_.ranks()),
        stalls_(io_, reporter_, activity_, supervisor_) {
    Supervisor::Parts parts;
    std::vector<RankLabel> labels;
    for (int i = 0; i < kRanks; ++i) {
      RankPlace place;
      place.rank = i;
      place.host = i / kRanksPerHost;
      place.local_rank = i % kRanksPerHost;
      parts.placement.ranks.push_back(place);
      labels.push_back(RankLabel{"node" + std::to_string(place.host), place.host});
    }
    for (int i = 0; i < kHosts; ++i) {
      Host host;
      host.name = "node" + std::to_string(i);
      agents_.push_back(std::make_unique<testing::FakeAgent>(io_));
      links_.push_back(std::make_unique<AgentChannel>(io_, group_, std::move(host), agents_.back()->channel(),
                                                      control::Hello(), control::FrameParser()));
      links_.back()->on(
          [this](AgentChannel& link, control::Frame frame) {
            if (frame.type == Type::kActivity) {
              activity_.take(*control::decode<control::Activity>(frame.body), Clock::now());
            } else {
              supervisor_.on_frame(link, std::move(frame));
            }
          },
          [this](AgentChannel& link, const Error& error) { supervisor_.on_lost(link, error); },
          [](AgentChannel&, seconds) {});
      links_.back()->start();
      hosts_.push_back(links_.back().get());
    }
    parts.hosts = hosts_;
    parts.output = &output_;
    parts.events = &events_;
    parts.started = [this](const control::Started& m) { joins_.on_started(m); };
    parts.exited = [this](const control::Exited& m) { joins_.on_exited(m); };
    parts.stdin_taken = [this](int rank, std::uint64_t n_bytes) { taken_[rank].push_back(n_bytes); };
    output_.open(labels, kCredit);
    supervisor_.attach(std::move(parts));
    supervisor_.serve(server_);
    joins_.expect(&server_);
    activity_.expect(hosts_);
    watch_.begin(Stage::kStart, {"node0", "node1", "node2"});
  }
  ~SupervisorTest() override {
    stalls_.stop();
    joins_.stop();
    for (const auto& link : links_) link->close();
    time_.run_for(milliseconds(10));
  }

  void run(Task<void> task) {
    asio::co_spawn(io_, std::move(task), [](std::exception_ptr e) { EXPECT_FALSE(e); });
  }
  static Task<void> wait(Supervisor& supervisor, bool& over) {
    co_await supervisor.wait();
    over = true;
  }
  void begin() {
    ASSERT_TRUE(supervisor_.activate());
    run(wait(supervisor_, over_));
    for (std::uint32_t rank = 0; rank < kRanks; ++rank) start(rank);
    settle();
  }
  void settle() { time_.run_for(milliseconds(10)); }
  // A worker of that host connects to its relay.
  void open_relay(std::size_t host) {
    supervisor_.add_relay(*hosts_[host]);
    control::Relay opening;
    opening.connection = 1;
    agents_[host]->say(Type::kRelayOpen, opening);
  }
  testing::FakeAgent& agent_of(std::uint32_t rank) { return *agents_[rank / kRanksPerHost]; }
  void start(std::uint32_t rank) {
    control::Started m;
    m.rank = rank;
    m.pid = 100 + static_cast<int>(rank);
    agent_of(rank).say(Type::kStarted, m);
  }
  void end(std::uint32_t rank, int wait_status, bool by_drun = false) {
    control::Exited m;
    m.rank = rank;
    m.pid = 100 + static_cast<int>(rank);
    m.wait_status = wait_status;
    m.ended_by_drun = by_drun;
    agent_of(rank).say(Type::kExited, m);
    for (const auto stream : {control::Stream::kStdout, control::Stream::kStderr}) {
      control::Output output;
      output.rank = rank;
      output.stream = stream;
      agent_of(rank).say(Type::kOutputEnd, output);
    }
  }
  // As an agent does that is told to stop.
  void stop_all() {
    for (std::uint32_t rank = 0; rank < kRanks; ++rank) {
      if (!supervisor_.ranks().at(static_cast<int>(rank)).exited) end(rank, SIGTERM, true);
    }
    for (const auto& agent : agents_) agent->say(Type::kFinished, control::Finished());
    settle();
  }
  void join(int rank) {
    server_.members.push_back(rank);
    supervisor_.on_joined(rank);
    joins_.on_joined(rank, 100 + rank);
  }

  asio::io_context io_{1};
  testing::VirtualTime time_{io_};
  testing::RecordingReporter reporter_;
  FakeServer server_;
  AgentChannels group_;
  std::vector<std::unique_ptr<testing::FakeAgent>> agents_;
  std::vector<std::unique_ptr<AgentChannel>> links_;
  std::vector<AgentChannel*> hosts_;
  OutputWriter output_;
  Events events_;
  StartWatch watch_;
  Supervisor supervisor_;
  JoinTracker joins_;
  CollectiveProgress activity_;
  StallReporter stalls_;
  std::map<int, std::vector<std::uint64_t>> taken_;
  bool over_ = false;
};

TEST_F(SupervisorTest, AGoodJobEndsWhenEveryAgentHasFinished) {
  begin();
  for (std::uint32_t rank = 0; rank < kRanks; ++rank) end(rank, 0);
  settle();
  for (const auto& agent : agents_) {
    ASSERT_EQ(agent->count(Type::kStop), 1u);
    EXPECT_EQ(agent->last<control::Stop>(Type::kStop).grace_ms, 0u);
  }
  EXPECT_THAT(server_.aborts, IsEmpty());
  EXPECT_FALSE(over_);
  stop_all();
  EXPECT_TRUE(over_);
  EXPECT_EQ(supervisor_.status(), 0);
  EXPECT_THAT(reporter_.warnings, IsEmpty());
}

TEST_F(SupervisorTest, AFailureEndsTheJobOnEveryHost) {
  begin();
  for (const int rank : {0, 1, 4}) join(rank);
  end(2, 3 << 8);
  settle();
  ASSERT_THAT(server_.aborts, SizeIs(1));
  EXPECT_EQ(server_.aborts[0].rank, 2);
  EXPECT_EQ(server_.aborts[0].host, "node1");
  EXPECT_THAT(agents_[0]->last<control::Stop>(Type::kStop).delayed, ElementsAre(0u, 1u));
  EXPECT_THAT(agents_[1]->last<control::Stop>(Type::kStop).delayed, IsEmpty());
  EXPECT_THAT(agents_[2]->last<control::Stop>(Type::kStop).delayed, ElementsAre(4u));
  EXPECT_EQ(agents_[1]->last<control::Stop>(Type::kStop).grace_ms, 5000u);
  stop_all();
  EXPECT_TRUE(over_);
  EXPECT_EQ(supervisor_.status(), 3);
}

TEST_F(SupervisorTest, AFrozenHostIsLostAfterItsHeartbeatTimeoutAndEndsTheJob) {
  begin();
  agents_[1]->stop_reading();
  const auto beat = [this] {
    for (const std::size_t i : {0u, 2u}) agents_[i]->say(Type::kHeartbeat);
  };
  for (int i = 0; i < 29; ++i) {
    time_.run_for(seconds(1));
    beat();
  }
  EXPECT_THAT(server_.aborts, IsEmpty());
  time_.run_for(seconds(2));
  ASSERT_THAT(server_.aborts, SizeIs(1));
  EXPECT_THAT(server_.aborts[0].why, HasSubstr("host node1 was lost: silent for 30 s"));
  EXPECT_EQ(agents_[0]->count(Type::kStop), 1u);
  stop_all();
  EXPECT_TRUE(over_);
  EXPECT_EQ(supervisor_.status(), kExitUnreachable);
  EXPECT_THAT(supervisor_.unfinished_hosts(), IsEmpty()) << "it is known to be lost";
}

// A pager that is at its first page, say.
TEST_F(SupervisorTest, AJobThatHasEndedIsNotTimedOutWhileItsOutputIsRead) {
  begin();
  JobTimeout timeout(io_, reporter_, supervisor_, milliseconds(0));
  const Placement placement;
  bool has_ended = false;
  run(timeout.watch(
      hosts_, placement, seconds(2), [] { return std::vector<int>{}; }, [&has_ended] { has_ended = true; }));
  time_.run_for(seconds(1));
  supervisor_.stop(0, "all ranks have ended");
  time_.run_for(seconds(2));
  EXPECT_FALSE(timeout.has_passed());
  EXPECT_FALSE(has_ended);
  stop_all();
}

TEST_F(SupervisorTest, AnAgentThatDoesNotFinishIsGivenUpAndNamed) {
  begin();
  supervisor_.stop(kExitTimeout, "the job took too long");
  for (const std::size_t i : {0u, 1u}) agents_[i]->say(Type::kFinished, control::Finished());
  for (int i = 0; i < 14; ++i) {
    time_.run_for(seconds(1));
    for (const auto& agent : agents_) agent->say(Type::kHeartbeat);
  }
  EXPECT_FALSE(over_);
  time_.run_for(milliseconds(1100));  // 5 s of grace, and 10
  EXPECT_TRUE(over_);
  EXPECT_THAT(supervisor_.unfinished_hosts(), ElementsAre("node2"));
  EXPECT_EQ(supervisor_.status(), kExitTimeout);
}

// Its peer fails soon, and the end of the job has a deadline before the host's silence has.
TEST_F(SupervisorTest, ADeadHostIsTheFailureThoughTheJobIsGivenUpBeforeItCountsAsLost) {
  begin();
  agents_[1]->stop_reading();
  const auto run_for = [this](int n_seconds) {
    for (int second = 0; second < n_seconds; ++second) {
      time_.run_for(seconds(1));
      for (const std::size_t i : {0u, 2u}) agents_[i]->say(Type::kHeartbeat);
    }
  };
  run_for(8);
  supervisor_.on_complaint(0, "rank 2 closed its connection during allreduce");
  end(0, SIGABRT);
  settle();
  for (const std::uint32_t rank : {1u, 4u, 5u}) end(rank, SIGTERM, true);
  for (const std::size_t i : {0u, 2u}) agents_[i]->say(Type::kFinished, control::Finished());
  run_for(14);
  EXPECT_FALSE(over_);
  run_for(2);
  ASSERT_TRUE(over_);
  EXPECT_EQ(supervisor_.status(), kExitUnreachable);
  EXPECT_THAT(supervisor_.report().failure->first.front().sentence(),
              HasSubstr("host node1 silent for 23 s: the host is down, frozen or cut off"));
  EXPECT_THAT(supervisor_.unfinished_hosts(), IsEmpty()) << "it is known to be lost";
}

TEST_F(SupervisorTest, ASecondInterruptIsAnOrderWithoutGrace) {
  begin();
  supervisor_.stop(kExitSignal + SIGINT, "drun got SIGINT");
  settle();
  supervisor_.stop_now();
  settle();
  for (const auto& agent : agents_) {
    EXPECT_EQ(agent->count(Type::kStop), 2u);
    EXPECT_EQ(agent->last<control::Stop>(Type::kStop).grace_ms, 0u);
  }
  stop_all();
  EXPECT_EQ(supervisor_.status(), 130);
}

TEST_F(SupervisorTest, AnEndThatTakesLongerIsExplained) {
  begin();
  end(0, 1 << 8);
  time_.run_for(milliseconds(900));
  EXPECT_THAT(reporter_.notes, IsEmpty());
  time_.run_for(milliseconds(200));
  EXPECT_THAT(reporter_.notes, ElementsAre(HasSubstr("waiting for 5 other workers to end (KILL after 5 s)")));
}

TEST_F(SupervisorTest, TheSameNoticeOfSeveralAgentsIsOneWarning) {
  begin();
  for (const auto& agent : agents_) agent->say(Type::kNotice, control::Text{"no cgroup"});
  agents_[1]->say(Type::kNotice, control::Text{"another"});
  settle();
  EXPECT_THAT(reporter_.warnings, ElementsAre("node0: no cgroup", "node1: another"));
}

// A frame about a rank, as its agent would send it.
std::string body_about(Type type, std::uint32_t rank) {
  control::Started started;
  control::Exited exited;
  control::Output output;
  control::Credit credit;
  started.rank = exited.rank = output.rank = credit.rank = rank;
  exited.wait_status = SIGKILL;
  if (type == Type::kStarted) return control::encode(started);
  if (type == Type::kExited) return control::encode(exited);
  if (type == Type::kStdinCredit) return control::encode(credit);
  return control::encode(output);
}

class ForeignRank : public SupervisorTest, public ::testing::WithParamInterface<Type> {};

TEST_P(ForeignRank, EndsTheChannelOfTheHostThatSpeaksAboutIt) {
  begin();
  agents_[0]->say_body(GetParam(), body_about(GetParam(), 4));
  settle();
  EXPECT_TRUE(links_[0]->lost());
  EXPECT_TRUE(agents_[0]->is_closed) << "it ends its workers";
  EXPECT_FALSE(supervisor_.ranks().at(4).exited);
  EXPECT_TRUE(taken_[4].empty());
  ASSERT_THAT(server_.aborts, SizeIs(1));
  EXPECT_THAT(server_.aborts[0].why, HasSubstr("host node0 was lost: its agent sent "));
  EXPECT_THAT(server_.aborts[0].why, HasSubstr(" of rank 4, which runs on node2"));
}

TEST_P(ForeignRank, EndsTheChannelAlsoIfItDoesNotExist) {
  begin();
  agents_[1]->say_body(GetParam(), body_about(GetParam(), 77));
  settle();
  ASSERT_THAT(server_.aborts, SizeIs(1));
  EXPECT_THAT(server_.aborts[0].why, HasSubstr("host node1 was lost: its agent sent "));
  EXPECT_THAT(server_.aborts[0].why, HasSubstr(" of rank 77, which the job does not have"));
}

TEST_P(ForeignRank, IsNothingBeforeTheStart) {
  agents_[0]->say_body(GetParam(), body_about(GetParam(), 4));
  settle();
  EXPECT_FALSE(links_[0]->lost()) << "ranks may still move";
}

INSTANTIATE_TEST_SUITE_P(Frames, ForeignRank,
                         ::testing::Values(Type::kStarted, Type::kExited, Type::kOutput, Type::kOutputEnd,
                                           Type::kStdinCredit));

TEST_F(SupervisorTest, OutputBeyondTheCreditEndsTheChannelOfItsHost) {
  begin();
  control::Output output;
  output.rank = 2;
  output.bytes = std::string(kCredit, 'x');
  agents_[1]->say(Type::kOutput, output);
  settle();
  EXPECT_FALSE(links_[1]->lost());
  output.bytes = "x";
  agents_[1]->say(Type::kOutput, output);
  settle();
  ASSERT_THAT(server_.aborts, SizeIs(1));
  EXPECT_THAT(server_.aborts[0].why,
              HasSubstr("host node1 was lost: its agent sent output of rank 2 on node1 (pid 102) beyond its credit"));
}

TEST_F(SupervisorTest, AnOutputEndsOnce) {
  begin();
  for (int i = 0; i < 2; ++i) agents_[0]->say_body(Type::kOutputEnd, body_about(Type::kOutputEnd, 1));
  settle();
  ASSERT_THAT(server_.aborts, SizeIs(1));
  EXPECT_THAT(server_.aborts[0].why, HasSubstr("the end of an output of rank 1 on node0 (pid 101) after its end"));
}

TEST_F(SupervisorTest, NoticesAreBounded) {
  begin();
  for (int i = 0; i < 1000; ++i) agents_[0]->say(Type::kNotice, control::Text{std::to_string(i)});
  settle();
  EXPECT_THAT(reporter_.warnings, SizeIs(100));
}

TEST_F(SupervisorTest, ANoticeIsALine) {
  begin();
  agents_[0]->say(Type::kNotice, control::Text{testing::kHostile});
  settle();
  EXPECT_THAT(reporter_.warnings, ElementsAre("node0: " + testing::kHostileInOneLine));
}

TEST_F(SupervisorTest, BodiesThatAreNoneAreIgnored) {
  begin();
  agents_[0]->say_body(Type::kExited, "short");
  agents_[0]->say_body(Type::kHello, "");
  settle();
  EXPECT_FALSE(supervisor_.stopping());
  EXPECT_FALSE(links_[0]->lost());
}

TEST_F(SupervisorTest, SignalsGoToEveryHost) {
  begin();
  supervisor_.forward_signal(SIGUSR1);
  settle();
  for (const auto& agent : agents_) EXPECT_EQ(agent->last<control::Signal>(Type::kSignal).number, SIGUSR1);
}

TEST_F(SupervisorTest, StdinIsOverForRanksThatAre) {
  begin();
  control::Credit credit;
  credit.rank = 1;
  credit.n_bytes = 4096;
  agents_[0]->say(Type::kStdinCredit, credit);
  credit.n_bytes = control::Credit::kNoMore;
  agents_[0]->say(Type::kStdinCredit, credit);
  end(3, 0);
  settle();
  EXPECT_THAT(taken_[1], ElementsAre(4096u, kRankOver));
  ASSERT_FALSE(taken_[3].empty());
  EXPECT_EQ(taken_[3].front(), kRankOver);
}

TEST_F(SupervisorTest, AHostThatDoesNotStartItsWorkersEndsTheJobAtTheStartsDeadline) {
  ASSERT_TRUE(supervisor_.activate());
  run(wait(supervisor_, over_));
  run(joins_.watch_start(Clock::now() + seconds(20)));
  for (const std::uint32_t rank : {0u, 1u, 2u, 3u, 4u}) start(rank);
  for (int i = 0; i < 19; ++i) {
    time_.run_for(seconds(1));
    for (const auto& agent : agents_) agent->say(Type::kHeartbeat);
  }
  EXPECT_THAT(reporter_.errors, IsEmpty());
  time_.run_for(milliseconds(1500));
  EXPECT_THAT(reporter_.errors,
              ElementsAre(HasSubstr("node2: start: its agent did not start its workers within 20 s")));
  stop_all();
  EXPECT_EQ(supervisor_.status(), kExitTimeout);
}

TEST_F(SupervisorTest, AStartThatIsLateHasFiveSecondsToFork) {
  ASSERT_TRUE(supervisor_.activate());
  run(wait(supervisor_, over_));
  run(joins_.watch_start(start_deadline(Clock::now() - seconds(1))));
  time_.run_for(milliseconds(4900));
  EXPECT_THAT(reporter_.errors, IsEmpty());
  for (std::uint32_t rank = 0; rank < kRanks; ++rank) start(rank);
  time_.run_for(seconds(2));
  EXPECT_THAT(reporter_.errors, IsEmpty());
  EXPECT_EQ(server_.notes[5], "pid 105 runs");
}

TEST_F(SupervisorTest, RanksThatDoNotJoinAreNamedOnce) {
  begin();
  run(joins_.watch_joins(seconds(6)));
  time_.run_for(seconds(9));
  EXPECT_THAT(reporter_.warnings, IsEmpty()) << "a job without libdrun joins nothing";
  for (const int rank : {0, 1, 2}) join(rank);
  end(4, 0);
  time_.run_for(milliseconds(5900));
  EXPECT_THAT(reporter_.warnings, IsEmpty());
  time_.run_for(milliseconds(200));
  EXPECT_THAT(reporter_.warnings, ElementsAre("3 of 6 ranks joined the job within 6 s and may wait for the others: "
                                              "rank 3 on node1 (pid 103 runs), ranks 4-5 on node2"));
  EXPECT_EQ(server_.notes[4], "its process has ended");
}

TEST_F(SupervisorTest, ARankThatEndedBeforeItJoinedIsNamed) {
  begin();
  run(joins_.watch_joins(seconds(6)));
  for (const int rank : {0, 1, 2, 3, 5}) join(rank);
  end(4, 0);
  time_.run_for(milliseconds(6100));
  EXPECT_THAT(reporter_.warnings, ElementsAre(HasSubstr("rank 4 on node2 (its process has ended)")));
}

// As after Ctrl-Z: Clock stands still while drun is stopped.
TEST_F(SupervisorTest, TheTimeOfAStopDoesNotCountForJoins) {
  begin();
  run(joins_.watch_joins(seconds(6)));
  join(0);
  time_.run_for(seconds(5));
  Clock::was_stopped_for(seconds(30));
  time_.run_for(seconds(30));
  EXPECT_THAT(reporter_.warnings, IsEmpty());
  time_.run_for(milliseconds(1200));
  EXPECT_THAT(reporter_.warnings, SizeIs(1));
}

TEST_F(SupervisorTest, RanksThatAllJoinAreNotMentioned) {
  begin();
  run(joins_.watch_joins(seconds(6)));
  for (int rank = 0; rank < kRanks; ++rank) join(rank);
  time_.run_for(seconds(8));
  EXPECT_THAT(reporter_.warnings, IsEmpty());
}

// Ranks 0 to 2 are in allreduce #7 and stay there; the others have not called it.
TEST_F(SupervisorTest, ACallWithoutProgressIsToldAndWhenItGoesOn) {
  begin();
  std::uint64_t seq = 7;
  for (std::size_t host = 0; host < agents_.size(); ++host) {
    agents_[host]->answer = [this, host, &seq](const control::Frame& frame) {
      if (frame.type != Type::kAskActivity) return;
      control::Activity m;
      for (std::uint32_t i = 0; i < kRanksPerHost; ++i) {
        control::RankActivity rank;
        rank.rank = static_cast<std::uint32_t>(host) * kRanksPerHost + i;
        rank.n_begun = rank.world_seq = rank.rank < 3 ? seq : seq - 1;
        rank.time_ns = 1'000'000'000'000;
        control::RecordedCall call;
        call.kind = 1;
        call.seq = rank.n_begun;
        call.started_ns = 1'000'000'000'000 - 1'000'000 + seq;
        if (rank.rank < 3) {
          rank.open = {call};
        } else {
          call.ended_ns = call.started_ns + 1;
          rank.last = {call};
        }
        m.ranks.push_back(std::move(rank));
      }
      agents_[host]->say(Type::kActivity, m);
    };
  }
  run(stalls_.watch(hosts_, seconds(20)));
  time_.run_for(seconds(19));
  EXPECT_THAT(reporter_.warnings, IsEmpty());
  time_.run_for(seconds(7));
  ASSERT_THAT(reporter_.warnings, ElementsAre(HasSubstr("no progress for 20 s in allreduce #7")));
  EXPECT_THAT(reporter_.warnings[0], HasSubstr("ranks 0-2 have waited in it for 20 s"));
  EXPECT_THAT(reporter_.warnings[0], HasSubstr("rank 3 on node1 (pid 103) has not called allreduce #7"));
  time_.run_for(seconds(60));
  EXPECT_THAT(reporter_.warnings, SizeIs(1)) << "told once";
  seq = 8;
  time_.run_for(seconds(8));
  EXPECT_THAT(reporter_.notes, ElementsAre(HasSubstr("allreduce #7 went on after")));
}

class FakeHorovodServer : public rendezvous::HorovodServer {
 public:
  Result<int> listen(const std::string&) override { return 0; }
  void adopt(asio::generic::stream_protocol::socket socket) override { adopted.push_back(std::move(socket)); }
  std::size_t n_connections() const override { return adopted.size(); }
  void stop() override {}
  Task<void> join() override { co_return; }

  std::vector<asio::generic::stream_protocol::socket> adopted;
};

TEST_F(SupervisorTest, RelayedConnectionsReachTheServerOfTheirNumber) {
  FakeHorovodServer horovod;
  const auto open = [&](std::uint32_t connection) {
    control::Relay opening;
    opening.connection = connection;
    agents_[1]->say(Type::kRelayOpen, opening);
    settle();
  };
  supervisor_.add_relay(*hosts_[1]);
  open(rendezvous::kFirstHorovodRelay);  // of a job without Horovod
  EXPECT_TRUE(server_.adopted.empty());
  supervisor_.serve(server_, &horovod);
  open(1);
  open(rendezvous::kFirstHorovodRelay + 1);
  open(2);
  EXPECT_THAT(server_.adopted, SizeIs(2));
  EXPECT_THAT(horovod.adopted, SizeIs(1));
  supervisor_.serve(server_);
}

// A large value for each rank of a slow host must not fill drun's memory, nor keep its orders waiting.
TEST_F(SupervisorTest, ARelayTakesNoMoreThanItsHostDoes) {
  open_relay(1);
  settle();
  ASSERT_THAT(server_.adopted, SizeIs(1));
  agents_[1]->stop_reading();
  constexpr std::size_t kBytes = 8u << 20, kLimit = 3u << 19;
  std::string given(kBytes, '\0'), taken;
  for (std::size_t i = 0; i < kBytes; ++i) given[i] = static_cast<char>(i * 7919 >> 8);
  std::size_t n_given = 0;
  const auto give = [&] {
    for (std::size_t before = kBytes; before != n_given;) {
      before = n_given;
      boost::system::error_code ignored;
      n_given += server_.adopted[0].write_some(asio::buffer(given) + n_given, ignored);
      settle();
    }
  };
  give();
  EXPECT_LT(n_given, 2 * kLimit) << "with what the kernel holds";
  EXPECT_LT(hosts_[1]->queued_bytes(), kLimit);
  agents_[1]->go_on_reading();
  for (int round = 0; round < 100 && n_given < kBytes; ++round) {
    settle();
    give();
  }
  settle();
  for (const auto& frame : agents_[1]->frames) {
    if (frame.type == Type::kRelayData) taken += control::decode<control::Relay>(frame.body)->bytes;
  }
  EXPECT_TRUE(taken == given) << taken.size();
}

// Else the end of a job would wait for a host that is frozen.
TEST_F(SupervisorTest, ARelayThatWaitsForItsHostEndsWithTheJob) {
  open_relay(1);
  begin();
  agents_[1]->stop_reading();
  boost::system::error_code ignored;
  const std::string some(256u << 10, 'x');
  for (int i = 0; i < 100; ++i) {
    server_.adopted[0].write_some(asio::buffer(some), ignored);
    settle();
  }
  EXPECT_GT(hosts_[1]->queued_bytes(), std::size_t{1} << 20);
  for (std::uint32_t rank = 0; rank < kRanks; ++rank) end(rank, 0);
  time_.run_for(seconds(20));
  EXPECT_TRUE(over_);
}

}  // namespace
}  // namespace drun::launcher
