#include "runtime/src/discovery.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <map>

#include "tests/temp_folder.h"

namespace drun::runtime {
namespace {

Outcome<Surroundings> read(const std::map<std::string, std::string>& env) {
  return read_surroundings([&](const char* name) -> const char* {
    const auto found = env.find(name);
    return found == env.end() ? nullptr : found->second.c_str();
  });
}

const std::string kKey(64, 'a');

TEST(Discovery, IsAloneWithoutDrun) {
  const auto found = read({{"RANK", "3"}, {"DRUN_RENDEZVOUS", "10.0.0.1:5"}});
  ASSERT_TRUE(found);
  EXPECT_EQ(found->kind, Surroundings::Kind::kAlone);
}

TEST(Discovery, TakesTheAgentBeforeTheKey) {
  const auto found =
      read({{"DRUN_AGENT", "/run/a"}, {"DRUN_RANK", "2"}, {"DRUN_KEY", kKey}, {"DRUN_RENDEZVOUS", "[fd00::1]:77"}});
  ASSERT_TRUE(found) << found.error().text;
  EXPECT_EQ(found->kind, Surroundings::Kind::kAgent);
  EXPECT_EQ(found->rank, 2);
  EXPECT_TRUE(found->has_key);
  EXPECT_EQ(found->rendezvous_address, "fd00::1");
  EXPECT_EQ(found->rendezvous_port, 77);
  EXPECT_EQ(found->n_streams, 1);
  EXPECT_EQ(read({{"DRUN_STREAMS", "16"}})->n_streams, 16);
  EXPECT_EQ(found->allreduce, std::nullopt);
  EXPECT_EQ(read({{"DRUN_TEST_ALLREDUCE", "halving"}})->allreduce, AllreduceAlgorithm::kHalving);
}

TEST(Discovery, RefusesHalfAJob) {
  const std::map<std::string, std::string> good{
      {"DRUN_KEY", kKey}, {"DRUN_RENDEZVOUS", "10.0.0.1:5"}, {"DRUN_RANK", "1"}};
  ASSERT_TRUE(read(good));
  const auto bad = [&](const std::string& name, const std::string& value) {
    auto env = good;
    env[name] = value;
    const auto found = read(env);
    return found ? std::string() : found.error().text;
  };
  EXPECT_NE(bad("DRUN_RANK", "").find("DRUN_RANK"), std::string::npos);
  EXPECT_NE(bad("DRUN_RANK", "-1").find("DRUN_RANK=-1"), std::string::npos);
  EXPECT_NE(bad("DRUN_RENDEZVOUS", "10.0.0.1").find("DRUN_RENDEZVOUS=10.0.0.1"), std::string::npos);
  EXPECT_NE(bad("DRUN_RENDEZVOUS", "10.0.0.1:0").find("DRUN_RENDEZVOUS"), std::string::npos);
  for (const char* streams : {"0", "17", "many", "-1"}) {
    EXPECT_NE(bad("DRUN_STREAMS", streams).find("DRUN_STREAMS=" + std::string(streams)), std::string::npos);
  }
  EXPECT_NE(bad("DRUN_TEST_ALLREDUCE", "fast").find("DRUN_TEST_ALLREDUCE=fast"), std::string::npos);
  const auto text = bad("DRUN_KEY", "secret");
  EXPECT_NE(text.find("DRUN_KEY"), std::string::npos);
  EXPECT_EQ(text.find("secret"), std::string::npos);
}

TEST(Discovery, NamesAnAgentThatIsNotThere) {
  Surroundings surroundings;
  surroundings.kind = Surroundings::Kind::kAgent;
  surroundings.agent_socket = "/nonexistent/agent.sock";
  const auto job_context = join_world(surroundings, {});
  ASSERT_FALSE(job_context);
  EXPECT_EQ(job_context.error().status, DRUN_ERROR_CONNECT);
  EXPECT_NE(job_context.error().text.find("DRUN_AGENT=/nonexistent/agent.sock"), std::string::npos)
      << job_context.error().text;
}

// A made-up process table: this process is below `names`, the last of which is a child of init.
class Ancestors : public ::testing::Test {
 protected:
  void are(const std::vector<std::string>& names) {
    pid_t pid = ::getppid();
    for (std::size_t i = 0; i < names.size(); ++i) {
      const pid_t parent = i + 1 < names.size() ? static_cast<pid_t>(5'000'000 + i) : 1;
      const std::string before = std::to_string(pid) + " (" + names[i] + ") S " + std::to_string(parent);
      folder_.write(std::to_string(pid) + "/stat", before + " 1 1 0 -1 4194560 0 0 0 0 0 0 0 0 20 0 1 0 4711 0\n");
      pid = parent;
    }
  }
  drun::testing::TempFolder folder_;
  const std::string proc_ = folder_.path();
};

TEST_F(Ancestors, WithAnAgentAmongThemAreFound) {
  EXPECT_EQ(agent_above(proc_), 0);
  are({"sh", "a) S 1 (b", "drun-agent", "drun"});
  EXPECT_EQ(agent_above(proc_), 5'000'001);
  are({"drun-agent"});
  EXPECT_EQ(agent_above(proc_), ::getppid());
}

TEST_F(Ancestors, WithoutAnAgentAreNone) {
  are({"sh", "drun", "bash", "drun-agent-like"});
  EXPECT_EQ(agent_above(proc_), 0);
}

}  // namespace
}  // namespace drun::runtime
