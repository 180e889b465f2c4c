#include "cli/command_init.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "base/fd.h"
#include "cli/whole_file.h"
#include "launcher/plan/hostlist.h"
#include "tests/temp_folder.h"
#include "tests/unit/cli/captured.h"
#include "tests/unit/cli/check_report/samples.h"

namespace drun::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

Checker made_up(const check::CheckResult& result, int status) {
  Checker out;
  out.check = [result](check::CheckOptions, launcher::Reporter&) { return result; };
  out.status = [status](const check::CheckResult&, bool) { return status; };
  return out;
}

check::CheckResult with_gpus(const std::vector<std::pair<std::string, std::size_t>>& hosts) {
  auto result = samples::healthy(static_cast<int>(hosts.size()));
  for (std::size_t i = 0; i < hosts.size(); ++i) {
    auto& host = result.hosts[i];
    host.name = hosts[i].first;
    host.facts.emplace();
    host.facts->n_cpus = 64;
    host.facts->gpus.assign(hosts[i].second, {});
    if (hosts[i].second > 0) host.facts->gpus[0].name = "NVIDIA H100";
  }
  return result;
}

class Init : public ::testing::Test {
 protected:
  int run(std::vector<std::string> args, const check::CheckResult& result = samples::healthy(2), int status = 0) {
    const Captured out(folder_.path("out")), messages(folder_.path("messages"), STDERR_FILENO);
    Printer printer;
    args.insert(args.end(), {"--output", file()});
    return command_init(args, made_up(result, status), printer);
  }
  std::string file() const { return folder_.path("drun.toml"); }
  std::string text() const { return read_file(file()).value_or("no file"); }
  std::string said() const { return read_file(folder_.path("messages")).value_or(""); }

  drun::testing::TempFolder folder_;
};

TEST_F(Init, WritesHostsAndTheirNetwork) {
  const auto result = samples::healthy(2);
  EXPECT_EQ(run({"-H", "a:8,b", "-p", "12345"}, result), 0);
  EXPECT_THAT(text(), HasSubstr("\nssh-port = 12345\n"));
  EXPECT_THAT(text(), HasSubstr("\nnetwork-interfaces = [\"10."));
  EXPECT_THAT(text(), HasSubstr("\"a:8\""));
  EXPECT_THAT(text(), HasSubstr("# Its check of the hosts: ready; "));
}

TEST_F(Init, AHostWithoutSlotsGetsOneForEachGpu) {
  EXPECT_EQ(run({"-H", "a:8,me@b,c:gpus=0,2"}, with_gpus({{"a", 4}, {"b", 4}})), 0);
  EXPECT_THAT(text(), HasSubstr("  \"a:8\",  # 4 GPUs (NVIDIA H100), 64 processors\n  \"me@b:4\",  # 4 GPUs"));
  EXPECT_THAT(text(), HasSubstr("  \"c:gpus=0,2\",\n"));
}

// As the check has them: "b" was not reached, and "c" is another name of "a".
TEST_F(Init, AHostHasItsOwnGpusWhereTheCheckHasAnotherOrder) {
  auto result = with_gpus({{"a", 2}, {"d", 0}, {"b", 0}});
  result.hosts[2].facts.reset();
  result.hosts[2].error = Error(Errc::kUnreachable, "b", "connect");
  EXPECT_EQ(run({"-H", "a,b,c,d"}, result), 0);
  EXPECT_THAT(text(), HasSubstr("  \"a:2\",  # 2 GPUs (NVIDIA H100), 64 processors\n  \"b:1\",\n  \"c:1\",\n"
                                "  \"d:1\",  # 64 processors\n"));
}

TEST_F(Init, AHostfileHasTheSlotsThatItSays) {
  ASSERT_TRUE(write_whole(folder_.path("hosts"), "a\nb\n"));
  EXPECT_EQ(run({"--hostfile", folder_.path("hosts")}, with_gpus({{"a", 8}, {"b", 8}})), 0);
  EXPECT_THAT(said(), HasSubstr(" starts 2 workers on 2 hosts"));
}

TEST_F(Init, GivenInterfacesAndHostfilesStay) {
  ASSERT_TRUE(write_whole(folder_.path("hosts"), "a\nb\n"));
  EXPECT_EQ(run({"--hostfile", folder_.path("hosts"), "--network-interfaces", "eth7"}), 0);
  EXPECT_THAT(text(), HasSubstr("hostfile = \"" + folder_.path("hosts") + "\"\n"));
  EXPECT_THAT(text(), HasSubstr("network-interfaces = [\"eth7\"]\n"));
  EXPECT_THAT(text(), Not(HasSubstr("hosts = [")));
}

TEST_F(Init, LeavesOutHostsOfAListAndNotOfAFile) {
  EXPECT_EQ(run({"-H", "a,b", "--exclude", "b"}, with_gpus({{"a", 8}})), 0);
  EXPECT_THAT(text(), HasSubstr("\nhosts = [\n  \"a:8\",  # 8 GPUs (NVIDIA H100), 64 processors\n]\n"));
  EXPECT_THAT(text(), Not(HasSubstr("exclude")));
  ASSERT_TRUE(write_whole(folder_.path("hosts"), "a\nb\n"));
  ASSERT_TRUE(write_whole(folder_.path("old.yaml"), "params:\n  num-proc: 2\n"));
  for (const std::vector<std::string>& args : {std::vector<std::string>{"--hostfile", folder_.path("hosts")},
                                               {"--from", folder_.path("old.yaml")},
                                               {"-H", "a,b", "--exclude", "@bad"}}) {
    auto with = args;
    with.insert(with.end(), {"--exclude", "b"});
    const auto refused = parse_init(with);
    ASSERT_FALSE(refused) << args.front();
    EXPECT_EQ(refused.error().subject, "--exclude");
  }
}

TEST_F(Init, WritesNothingForHostsThatAreNotReady) {
  EXPECT_EQ(run({"-H", "a,b"}, samples::one_unreachable(2), 68), 68);
  EXPECT_EQ(text(), "no file");
  EXPECT_EQ(run({"-H", "a,b", "--force"}, samples::one_unreachable(2), 68), 68);
  EXPECT_THAT(text(), HasSubstr("# Its check of the hosts: not ready; "));
  EXPECT_THAT(text(), Not(HasSubstr("network-interfaces")));
}

TEST_F(Init, KeepsAFileThatIsThere) {
  ASSERT_TRUE(write_whole(file(), "grace = 1\n"));
  EXPECT_EQ(run({"-H", "a,b"}), 2);
  EXPECT_EQ(text(), "grace = 1\n");
  EXPECT_EQ(run({"-H", "a,b", "--force"}), 0);
  EXPECT_THAT(text(), Not(HasSubstr("grace")));
}

TEST_F(Init, ConvertsAFileOfHorovodrun) {
  ASSERT_TRUE(write_whole(folder_.path("h.yaml"),
                          "timeline: {filename: t.json}\nstall_check: {enabled: false, warning_time_seconds: 9}\n"
                          "library_options: {thread_affinity: 1, num_nccl_streams: 2}\nother: 1\n"));
  EXPECT_EQ(run({"--from", folder_.path("h.yaml")}), 0);
  EXPECT_THAT(text(), HasSubstr("\ncompat = \"horovod\"\n"));
  EXPECT_THAT(text(), HasSubstr("\nstall-timeout = 0\n"));
  EXPECT_THAT(text(), HasSubstr("\n# timeline = \"t.json\"\n"));
  EXPECT_THAT(text(), HasSubstr("\n#   library_options.thread_affinity: drun can't do that; --bind-to core"));
  EXPECT_THAT(text(), HasSubstr("\n#   library_options.num_nccl_streams: it tunes Horovod's own library\n"));
  EXPECT_THAT(text(), HasSubstr("\n#   stall_check.warning_time_seconds: stall_check.enabled says otherwise\n"));
  EXPECT_THAT(text(), HasSubstr("\n#   other: horovodrun ignores it, too\n"));
}

TEST_F(Init, TheUsersOwnFileMayHaveEveryOption) {
  const std::string own = folder_.path("config/drun/drun.toml");
  std::filesystem::create_directories(folder_.path("config/drun"));
  const launcher::Environment env = {{"XDG_CONFIG_HOME", folder_.path("config")}};
  EXPECT_FALSE(parse_init({"-H", "a", "--output", own}, env)->is_found);
  EXPECT_TRUE(parse_init({"-H", "a", "--output", file()}, env)->is_found);
  EXPECT_FALSE(parse_init({"-H", "a", "--output", folder_.path("job.toml")}, env)->is_found);
}

TEST(InitOptions, ComplainAndSayWhatToType) {
  const auto refused = [](const std::vector<std::string>& args) {
    const auto out = parse_init(args);
    return out ? "" : out.error().message() + "; " + out.error().hint;
  };
  EXPECT_EQ(refused({}), "-H: the hosts are missing; drun init -H host1:8,host2:8");
  EXPECT_EQ(refused({"-H", "a,@gpu"}),
            "-H: drun init reads no drun.toml, so it does not know the group @gpu; drun init -H host1:8,host2:8");
  EXPECT_THAT(refused({"-H", "a", "--output", "-"}), HasSubstr("--output: is not written to standard output"));
  EXPECT_THAT(refused({"-H", "a", "--output", "/no/such/drun.toml"}), HasSubstr("--output: "));
  EXPECT_THAT(refused({"--from", "/no/such/file"}), HasSubstr("--from: "));
  EXPECT_THAT(refused({"-H", "a", "train.py"}), HasSubstr("train.py"));
  EXPECT_THAT(parse_init({"--help"})->help, HasSubstr("usage: drun init"));
}

}  // namespace
}  // namespace drun::cli
