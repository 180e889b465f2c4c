// LinkCheck over real agents, all on this host, on loopback.
#include "launcher/network/link_tests.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>

#include "base/text.h"
#include "check/check_times.h"
#include "netdetect/interface.h"
#include "transport/child_channel.h"

namespace drun::launcher {
namespace {

using netdetect::HostPair;
using netdetect::Link;
using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Reads the magic and the hello of an agent that was started without a bootstrap.
Task<Result<control::Hello>> first_words(transport::Channel& channel, control::FrameParser& parser) {
  std::string bytes, chunk(4096, '\0');
  for (;;) {
    const auto at = bytes.find(control::kMagic);
    if (at != std::string::npos) {
      parser.push(std::string_view(bytes).substr(at + control::kMagic.size()));
      bytes.clear();
      auto frame = parser.next();
      while (frame && !*frame) {
        const auto buffer = asio::buffer(chunk);
        const auto n = co_await channel.read_some(buffer);
        if (!n || *n == 0) co_return fail(Errc::kClosed, "no hello: " + channel.stderr_text());
        parser.push(std::string_view(chunk).substr(0, *n));
        frame = parser.next();
      }
      if (!frame) co_return fail(frame.error());
      co_return control::decode<control::Hello>((*frame)->body);
    }
    const auto buffer = asio::buffer(chunk);
    const auto n = co_await channel.read_some(buffer);
    if (!n || *n == 0) co_return fail(Errc::kClosed, "no magic: " + channel.stderr_text());
    bytes.append(chunk, 0, *n);
  }
}

struct Agents {
  asio::io_context io{1};
  AgentChannels group;
  std::vector<std::unique_ptr<AgentChannel>> channels;
  std::vector<std::string> errors;

  std::vector<AgentChannel*> all() const {
    std::vector<AgentChannel*> out;
    for (const auto& agent : channels) out.push_back(agent.get());
    return out;
  }
};

Task<void> bring(Agents& agents, std::vector<std::string> argv, std::string name) {
  auto channel = transport::spawn_child_channel(agents.io, argv);
  if (!channel) {
    agents.errors.push_back(channel.error().message());
    co_return;
  }
  control::FrameParser parser;
  const auto hello = co_await first_words(**channel, parser);
  if (!hello) {
    agents.errors.push_back(hello.error().message());
    (*channel)->close();
    co_await (*channel)->join();
    co_return;
  }
  Host host;
  host.name = std::move(name);
  agents.channels.push_back(std::make_unique<AgentChannel>(agents.io, agents.group, std::move(host),
                                                           std::move(*channel), *hello, std::move(parser)));
  AgentChannel& agent = *agents.channels.back();
  agent.start();
  control::Configure configure;
  char id[17];
  std::snprintf(id, sizeof id, "%016x", static_cast<unsigned>(::getpid()));
  configure.job_id = id;
  configure.heartbeat_ms = 500;
  configure.heartbeat_timeout_ms = 20000;
  configure.grace_ms = 200;
  agent.send(control::Type::kConfigure, control::encode(configure));
}

Task<void> dismiss(Agents& agents) {
  for (const auto& agent : agents.channels) agent->close();
  for (const auto& agent : agents.channels) co_await agent->join();
}

bool run(Agents& agents, Task<void> task, seconds limit = seconds(60)) {
  bool ended = false;
  asio::co_spawn(agents.io, std::move(task), [&ended](std::exception_ptr e) {
    if (e) std::rethrow_exception(e);
    ended = true;
  });
  const auto deadline = Clock::now() + limit;
  agents.io.restart();
  while (!ended && Clock::now() < deadline && agents.io.run_one_until(deadline) > 0) {
  }
  return ended;
}

netdetect::Choice choice_of(const std::vector<std::string>& addresses) {
  netdetect::Choice choice;
  for (const auto& text : addresses) {
    netdetect::HostChoice host;
    host.address = netdetect::parse_address(text);
    choice.hosts.push_back(std::move(host));
  }
  choice.reach.assign(addresses.size(), std::vector<int>(addresses.size(), 1));
  return choice;
}

class Links : public ::testing::Test {
 protected:
  void start(std::size_t n) {
    ::signal(SIGPIPE, SIG_IGN);
    for (std::size_t i = 0; i < n; ++i) {
      const std::vector<std::string> argv = {DRUN_AGENT_BINARY};
      ASSERT_TRUE(run(agents_, bring(agents_, argv, "host" + std::to_string(i))));
    }
    ASSERT_THAT(agents_.errors, IsEmpty());
  }
  void TearDown() override { EXPECT_TRUE(run(agents_, dismiss(agents_))); }

  Agents agents_;
};

struct Outcome {
  std::vector<Link> links, again;
  netdetect::RingRate ring;
  std::vector<std::string> notes;
};

Task<void> check_all(Agents& agents, netdetect::Choice choice, check::CheckDepth depth, std::vector<HostPair> again,
                     milliseconds time, std::shared_ptr<Outcome> out) {
  std::vector<int> order;
  for (std::size_t i = 0; i < agents.channels.size(); ++i) order.push_back(static_cast<int>(i));
  LinkCheck check(agents.io, agents.all(), std::move(choice), check::link_times(depth));
  co_await check.listen(Clock::now() + seconds(10));
  out->links = co_await check.first_pass(Clock::now() + time);
  out->again = co_await check.measure_again(std::move(again), Clock::now() + time);
  out->ring = co_await check.ring(std::move(order), Clock::now() + time);
  out->notes = check.notes();
}

TEST_F(Links, EveryPairIsMeasured) {
  start(3);
  auto out = std::make_shared<Outcome>();
  const auto choice = choice_of({"127.0.0.1", "127.0.0.1", "127.0.0.1"});
  ASSERT_TRUE(run(agents_, check_all(agents_, choice, check::CheckDepth::kDefault, {{2, 0}}, seconds(15), out)));
  EXPECT_THAT(out->notes, IsEmpty());
  ASSERT_EQ(out->links.size(), 3u);
  for (const auto& link : out->links) {
    SCOPED_TRACE(std::to_string(link.a) + " " + std::to_string(link.b));
    EXPECT_FALSE(link.again);
    EXPECT_GT(link.n_round_trips, 0u);  // all of them only if a core is free
    EXPECT_LE(link.n_round_trips, 100u);
    EXPECT_GT(link.rtt_median_us, 0);
    for (const auto& direction : {link.forward, link.backward}) {
      EXPECT_EQ(direction.error, "");
      EXPECT_EQ(direction.path_mtu, 65535);
      ASSERT_EQ(direction.rates.size(), 2u);
      EXPECT_EQ(direction.rates[0].n_streams, 1);
      EXPECT_EQ(direction.rates[1].n_streams, 4);
      EXPECT_GT(direction.rates[0].bits_per_second, 50e6);
      EXPECT_GT(direction.paced.n_segments, 0u);
    }
  }
  ASSERT_EQ(out->again.size(), 1u);
  EXPECT_EQ(out->again[0].a, 0);
  EXPECT_EQ(out->again[0].b, 2);
  EXPECT_TRUE(out->again[0].again);
  const auto& again = out->again[0].forward;
  EXPECT_EQ(again.rates.size(), 2u);
  EXPECT_GT(again.paced.n_segments, 0u);
  EXPECT_LT(again.paced.bits_per_second, 400e6);  // 5000 segments of at most 9000 bytes in a second
  ASSERT_EQ(out->ring.order.size(), 3u);
  for (const double rate : out->ring.bits_per_second) EXPECT_GT(rate, 10e6);
}

TEST_F(Links, TheSideThatCanConnectDoes) {
  start(2);
  auto choice = choice_of({"127.0.0.1", "127.0.0.1"});
  choice.reach[0][1] = 0;
  auto out = std::make_shared<Outcome>();
  ASSERT_TRUE(run(agents_, check_all(agents_, choice, check::CheckDepth::kQuick, {}, seconds(5), out)));
  ASSERT_EQ(out->links.size(), 1u);
  EXPECT_EQ(out->links[0].forward.error + out->links[0].backward.error, "");
  EXPECT_GT(out->links[0].forward.rates.at(0).bits_per_second, 0);
  EXPECT_GT(out->links[0].backward.rates.at(0).bits_per_second, 0);
  ASSERT_EQ(out->ring.bits_per_second.size(), 2u);
  EXPECT_GT(out->ring.bits_per_second[0], 0);
  EXPECT_GT(out->ring.bits_per_second[1], 0);
}

TEST_F(Links, PairsThatCanNotConnectAreLeftOut) {
  start(2);
  auto choice = choice_of({"127.0.0.1", "127.0.0.1"});
  choice.reach[0][1] = choice.reach[1][0] = 0;
  auto out = std::make_shared<Outcome>();
  ASSERT_TRUE(run(agents_, check_all(agents_, choice, check::CheckDepth::kQuick, {{0, 1}}, seconds(5), out)));
  EXPECT_THAT(out->links, IsEmpty());
  ASSERT_EQ(out->again.size(), 1u);
  EXPECT_THAT(out->again[0].forward.error, HasSubstr("neither host can connect"));
}

TEST_F(Links, WithoutTimeThereAreNotesInTheirPlace) {
  start(3);
  auto out = std::make_shared<Outcome>();
  const auto choice = choice_of({"127.0.0.1", "127.0.0.1", "127.0.0.1"});
  ASSERT_TRUE(run(agents_, check_all(agents_, choice, check::CheckDepth::kDefault, {{0, 1}}, milliseconds(1), out)));
  EXPECT_EQ(out->links.size(), 3u);
  for (const auto& link : out->links) EXPECT_THAT(link.forward.rates, IsEmpty());
  EXPECT_THAT(out->again, IsEmpty());
  EXPECT_THAT(out->ring.order, IsEmpty());
  EXPECT_THAT(out->notes, ::testing::Contains(HasSubstr("no time was left for round trips of 3 of 3 pairs")));
}

// Without them a lossy link of a fast network would look sound.
TEST_F(Links, LossesOfFewHostsAreCountedEvenIfTheTimeIsUp) {
  const auto has_rates = [](const Link& link) { return !link.forward.rates.empty() && !link.backward.rates.empty(); };
  start(3);
  std::shared_ptr<Outcome> out;
  const auto choice = choice_of({"127.0.0.1", "127.0.0.1", "127.0.0.1"});
  // Enough for round trips and bandwidth only. A busy machine needs longer for these.
  for (milliseconds time(500); time < seconds(10); time *= 2) {
    out = std::make_shared<Outcome>();
    ASSERT_TRUE(run(agents_, check_all(agents_, choice, check::CheckDepth::kQuick, {}, time, out)));
    ASSERT_EQ(out->links.size(), 3u);
    if (std::all_of(out->links.begin(), out->links.end(), has_rates)) break;
  }
  for (const auto& link : out->links) {
    for (const auto& direction : {link.forward, link.backward}) {
      EXPECT_EQ(direction.error, "");
      EXPECT_GT(direction.paced.n_segments, 0u);
    }
  }
}

Task<void> lose_one(Agents& agents, netdetect::Choice choice, std::shared_ptr<Outcome> out) {
  LinkCheck check(agents.io, agents.all(), std::move(choice), check::link_times(check::CheckDepth::kFull));
  co_await check.listen(Clock::now() + seconds(10));
  Timer timer(agents.io);
  timer.expires_after(milliseconds(1500));
  const pid_t victim = agents.channels[1]->hello().pid;
  timer.async_wait([victim](const boost::system::error_code& ec) {
    if (!ec) ::kill(victim, SIGKILL);
  });
  out->links = co_await check.first_pass(Clock::now() + seconds(20));
}

TEST_F(Links, AHostThatIsLostCostsOnlyItsPairs) {
  start(3);
  auto out = std::make_shared<Outcome>();
  const auto choice = choice_of({"127.0.0.1", "127.0.0.1", "127.0.0.1"});
  ASSERT_TRUE(run(agents_, lose_one(agents_, choice, out)));
  ASSERT_EQ(out->links.size(), 3u);
  for (const auto& link : out->links) {
    SCOPED_TRACE(std::to_string(link.a) + " " + std::to_string(link.b));
    const bool lost = link.a == 1 || link.b == 1;
    EXPECT_EQ(link.forward.error.empty(), !lost) << link.forward.error;
    EXPECT_TRUE(lost || link.forward.rates.size() == 2);
  }
}

}  // namespace
}  // namespace drun::launcher
