#include "launcher/run/job_orders.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace drun::launcher {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Two hosts with two ranks each, 10.0.0.1 and 10.0.0.2; the second one is relayed.
struct Start {
  Start() {
    options.command = {"./train", "--fast"};
    options.working_directory = "/home/me/run";
    options.own_env = {{"HOME", "/home/me"}, {"PATH", "/bin"}, {"SECRET", "1"}, {"CUDA_VISIBLE_DEVICES", "3"}};
    std::vector<Host> hosts(2);
    hosts[0].name = "a";
    hosts[1].name = "b";
    for (auto& host : hosts) host.slots = 2;
    plan.placement = *place(hosts, 0);
    plan.host_names = {"a", "b"};
    plan.n_cpus = {8, 4};
    for (const char* address : {"10.0.0.1", "10.0.0.2"}) {
      netdetect::HostChoice choice;
      choice.interface = "eth0";
      choice.address = netdetect::parse_address(address);
      choice.interfaces = {"eth0"};
      plan.network.hosts.push_back(std::move(choice));
      rendezvous::Handout handout;
      handout.rendezvous_address = plan.handouts.empty() ? "10.0.0.1" : "127.0.0.1";
      handout.rendezvous_port = 4000 + static_cast<int>(plan.handouts.size());
      handout.data_address = address;
      plan.handouts.push_back(std::move(handout));
    }
    plan.bindings.resize(2);
    plan.job_id = "0123456789abcdef";
    plan.master_port = 29500;
  }

  std::vector<control::Spawn> orders() const { return spawn_orders(options, plan, {}); }

  JobOptions options;
  StartPlan plan;
};

TEST(JobOrders, EveryRankIsStartedOnItsHostWithItsEnvironment) {
  Start start;
  const auto orders = start.orders();
  ASSERT_EQ(orders.size(), 2u);
  std::vector<std::uint32_t> ranks;
  for (const auto& order : orders) {
    for (const auto& worker : order.workers) ranks.push_back(worker.rank);
  }
  EXPECT_THAT(ranks, ElementsAre(0u, 1u, 2u, 3u));
  const auto& environment = orders[1].workers[1].environment;
  EXPECT_EQ(environment.at("RANK"), "3");
  EXPECT_EQ(environment.at("LOCAL_RANK"), "1");
  EXPECT_EQ(environment.at("WORLD_SIZE"), "4");
  EXPECT_EQ(environment.at("MASTER_ADDR"), "10.0.0.1");
  EXPECT_EQ(environment.at("MASTER_PORT"), "29500");
  EXPECT_EQ(environment.at("DRUN_JOB_ID"), "0123456789abcdef");
  EXPECT_EQ(environment.at("DRUN_RENDEZVOUS"), "127.0.0.1:4001") << "the relay of its agent";
  EXPECT_EQ(orders[0].workers[0].environment.at("DRUN_RENDEZVOUS"), "10.0.0.1:4000");
  EXPECT_EQ(environment.at("NCCL_SOCKET_IFNAME"), "=eth0");
}

TEST(JobOrders, StdinGoesToTheRanksThatWereAskedFor) {
  Start start;
  const auto readers = [&] {
    std::vector<std::uint32_t> out;
    for (const auto& order : start.orders()) {
      for (const auto& worker : order.workers) {
        if (worker.wants_stdin) out.push_back(worker.rank);
      }
    }
    return out;
  };
  EXPECT_THAT(readers(), ElementsAre(0u));
  start.options.stdin_rank = 2;
  EXPECT_THAT(readers(), ElementsAre(2u));
  start.options.stdin_mode = StdinMode::kAll;
  EXPECT_THAT(readers(), ElementsAre(0u, 1u, 2u, 3u));
  start.options.stdin_mode = StdinMode::kNone;
  EXPECT_THAT(readers(), IsEmpty());
}

TEST(JobOrders, TheJobsKeyIsInTheEnvironmentOnlyWhenItIsAskedFor) {
  Start start;
  EXPECT_FALSE(start.orders()[0].workers[0].environment.contains("DRUN_KEY"));
  start.options.env.exports = {"DRUN_KEY"};
  const auto environment = start.orders()[1].workers[0].environment;
  EXPECT_EQ(environment.at("DRUN_KEY").size(), 64u);
  EXPECT_EQ(environment.at("DRUN_DATA_ADDRESS"), "10.0.0.2");
}

TEST(JobOrders, EachHostHasItsRouteToHorovodsRendezvous) {
  Start start;
  EXPECT_FALSE(start.orders()[0].workers[0].environment.contains("HOROVOD_HOSTNAME"));
  start.options.env.real_horovod = true;
  start.plan.horovod = {{"a", "10.0.0.1:1/t", 1}, {"b", "127.0.0.1:2/t", 2}};
  const auto orders = start.orders();
  EXPECT_EQ(orders[0].workers[1].environment.at("HOROVOD_HOSTNAME"), "a");
  EXPECT_EQ(orders[1].workers[0].environment.at("HOROVOD_HOSTNAME"), "b");
  EXPECT_EQ(orders[1].workers[0].environment.at("HOROVOD_GLOO_RENDEZVOUS_ADDR"), "127.0.0.1:2/t");
  EXPECT_EQ(orders[1].workers[0].environment.at("HOROVOD_GLOO_RENDEZVOUS_PORT"), "2");
}

TEST(JobOrders, OutputOnTheWayIsBoundedOverAllWorkers) {
  Start start;
  EXPECT_EQ(start.orders()[0].output_credit, 512u << 10) << "no rank gets more";
  start.plan.placement.size = 1 << 20;
  EXPECT_EQ(start.orders()[0].output_credit, 16u << 10) << "nor less";
  start.plan.placement.size = 64;
  EXPECT_EQ(start.orders()[0].output_credit, 256u << 10);
}

TEST(JobOrders, PrepareHasWhatTheHostMustCheck) {
  Start start;
  start.options.env.compat_folder = "/drun/compat";
  start.plan.placement.ranks[3].gpu = "5";
  const auto first = prepare_order(start.options, start.plan, 0, true);
  const auto second = prepare_order(start.options, start.plan, 1, false);
  EXPECT_THAT(first.argv, ElementsAre("./train", "--fast"));
  EXPECT_EQ(first.working_directory, "/home/me/run");
  EXPECT_EQ(first.master_address, "10.0.0.1") << "its host reserves MASTER_PORT";
  EXPECT_EQ(second.master_address, "");
  EXPECT_THAT(second.gpus, ElementsAre("", "5"));
  EXPECT_TRUE(first.environment.contains("CUDA_VISIBLE_DEVICES"));
  EXPECT_FALSE(second.environment.contains("CUDA_VISIBLE_DEVICES")) << "GPUs of the head";
  EXPECT_TRUE(second.refuses_mpi);
  EXPECT_EQ(second.compat_folder, "/drun/compat");
  start.options.allows_mpi = true;
  EXPECT_FALSE(prepare_order(start.options, start.plan, 1, false).refuses_mpi);
}

TEST(JobOrders, ProblemsOfAHostBecomeErrorsWithTheStatusOfTheirKind) {
  control::Prepared prepared;
  for (const auto kind :
       {control::ProblemKind::kNotFound, control::ProblemKind::kNotExecutable, control::ProblemKind::kWorkingDirectory,
        control::ProblemKind::kMpi, control::ProblemKind::kNoAnswer, control::ProblemKind::kGpus,
        control::ProblemKind::kCompat}) {
    control::Problem problem;
    problem.kind = kind;
    problem.cause = "cause";
    problem.hint = "hint";
    prepared.problems.push_back(std::move(problem));
  }
  std::vector<Errc> codes;
  for (const auto& error : errors_of(prepared, "b")) {
    codes.push_back(error.code);
    EXPECT_EQ(error.subject, "b");
    EXPECT_EQ(error.cause, "cause");
    EXPECT_EQ(error.hint, "hint");
  }
  EXPECT_THAT(codes, ElementsAre(Errc::kNotFound, Errc::kNotExecutable, Errc::kUsage, Errc::kUsage, Errc::kTimeout,
                                 Errc::kUsage, Errc::kUsage));
}

TEST(JobOrders, AnAgentHasTimeToReplyBeforeItIsGivenUp) {
  EXPECT_EQ(time_of_agent(std::chrono::seconds(60)), 59'000u);
  EXPECT_EQ(time_of_agent(std::chrono::seconds(2)), 1500u);
  EXPECT_EQ(time_of_agent(std::chrono::seconds(0)), 0u);
}

TEST(JobOrders, ThreadsAreThoseOfTheHostOrOfTheBinding) {
  Start start;
  auto threads = threads_of(start.options, start.plan);
  ASSERT_EQ(threads.size(), 2u);
  EXPECT_EQ(threads[1].threads, 2) << "4 CPUs for 2 workers";
  control::Binding binding;
  binding.threads = 1;
  start.plan.bindings = {{binding, binding}, {binding, binding}};
  threads = threads_of(start.options, start.plan);
  ASSERT_EQ(threads.size(), 4u);
  EXPECT_EQ(threads[0].threads, 1);
  EXPECT_TRUE(threads[0].is_bound);
}

}  // namespace
}  // namespace drun::launcher
