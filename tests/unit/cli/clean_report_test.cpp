#include <gtest/gtest.h>

#include "base/clean_text.h"
#include "cli/clean_report.h"
#include "cli/command_clean.h"
#include "tests/hostile_text.h"

namespace drun::cli {
namespace {

using control::LeftState;

control::LeftProcess process(LeftState state, const std::string& job, int rank, int pid) {
  control::LeftProcess p;
  p.state = state;
  p.job_id = job;
  p.rank = rank;
  p.pid = pid;
  p.user = "ann";
  p.age_s = 125;
  p.command = "python3 train.py --a-long-option-with-a-value 1";
  return p;
}

launcher::CleanResult result_of(std::vector<control::LeftProcess> processes) {
  launcher::CleanResult out;
  launcher::CleanedHost host;
  host.name = "h1";
  host.found.processes = std::move(processes);
  out.hosts.push_back(std::move(host));
  return out;
}

TEST(CleanTable, NoTextCommandsTheTerminalOrForgesALine) {
  auto p = process(LeftState::kLeft, testing::kHostile, 0, 1);
  p.user = p.command = testing::kHostile;
  auto result = result_of({p});
  result.hosts[0].found.directories.push_back({LeftState::kSurvived, testing::kHostile, testing::kHostile});
  const std::string text = clean_table(result, 0);
  EXPECT_EQ(clean_text(text), text);
  EXPECT_EQ(text.find("\n  | forged"), std::string::npos) << text;
  EXPECT_EQ(clean_text(clean_json(result)), clean_json(result));
}

TEST(CleanOptions, DefaultsLookAtLocalhost) {
  const auto c = parse_clean({});
  ASSERT_TRUE(c.has_value());
  ASSERT_EQ(c->clean.hosts.size(), 1u);
  EXPECT_EQ(c->clean.hosts[0].name, "localhost");
  EXPECT_FALSE(c->clean.order.end);
  EXPECT_FALSE(c->clean.order.all_users);
  EXPECT_EQ(c->clean.order.grace_ms, 5000u);
}

TEST(CleanOptions, LookAtTheHostsOfTheBatchJob) {
  const auto c =
      parse_clean({}, {{"SLURM_JOB_ID", "4"}, {"SLURM_JOB_NODELIST", "n[1-2]"}, {"SLURM_TASKS_PER_NODE", "1(x2)"}});
  ASSERT_TRUE(c.has_value()) << c.error().message();
  ASSERT_EQ(c->clean.hosts.size(), 2u);
  EXPECT_EQ(c->clean.hosts[1].name, "n2");
}

TEST(CleanOptions, AreThoseOfRunForHosts) {
  const auto c = parse_clean({"-H", "localhost:1,root@host1:2", "-p", "12345", "-F", "none", "--transport", "openssh",
                              "--start-timeout", "7", "--job", "abc", "--yes", "--grace", "0.5"});
  ASSERT_TRUE(c.has_value()) << c.error().message();
  ASSERT_EQ(c->clean.hosts.size(), 2u);
  EXPECT_EQ(c->clean.hosts[1].user, "root");
  EXPECT_EQ(c->clean.connect.ssh.port, 12345);
  EXPECT_EQ(c->clean.connect.ssh.config_file, "none");
  EXPECT_TRUE(c->clean.connect.use_openssh);
  EXPECT_EQ(c->clean.connect.start_timeout.count(), 7);
  EXPECT_EQ(c->clean.order.job_id, "abc");
  EXPECT_TRUE(c->clean.order.end);
  EXPECT_EQ(c->clean.order.grace_ms, 500u);
}

TEST(CleanOptions, ComplainAboutWhatTheyDoNotKnow) {
  for (const std::vector<std::string>& args : {std::vector<std::string>{"./train"},
                                               {"-np", "2"},
                                               {"--yess"},
                                               {"--job", ""},
                                               {"--job", "a b"},
                                               {"--grace", "-1"},
                                               {"-H", "a", "--hostfile", "b"},
                                               {"-p", "99999"}}) {
    const auto c = parse_clean(args);
    ASSERT_FALSE(c.has_value()) << args[0];
    EXPECT_EQ(c.error().code, Errc::kUsage);
  }
}

TEST(CleanOptions, HelpNamesTheCommand) {
  const auto c = parse_clean({"--help"});
  ASSERT_TRUE(c.has_value());
  EXPECT_NE(c->help.find("usage: drun clean"), std::string::npos);
}

TEST(CleanReport, ShowsJobRankAndPid) {
  const auto text = clean_table(result_of({process(LeftState::kLeft, "aa", 3, 4711)}), 0);
  EXPECT_EQ(text,
            "h1: job aa left 1 process:\n"
            "   RANK      PID  USER     AGE  COMMAND\n"
            "      3     4711  ann       2m  python3 train.py --a-long-option-with-a-value 1\n");
}

TEST(CleanReport, CutsCommandsToTheTerminal) {
  const auto text = clean_table(result_of({process(LeftState::kLeft, "aa", 3, 4711)}), 60);
  EXPECT_NE(text.find("python3 train.py --a-long-op\n"), std::string::npos) << text;
}

TEST(CleanReport, KeepsRunningAndEndedApart) {
  const auto text =
      clean_table(result_of({process(LeftState::kEnded, "aa", 0, 1), process(LeftState::kSurvived, "aa", 1, 2),
                             process(LeftState::kRunning, "bb", -1, 3), process(LeftState::kRunning, "bb", 1, 4)}),
                  0);
  EXPECT_NE(text.find("h1: ended 1 process of job aa:\n"), std::string::npos) << text;
  EXPECT_NE(text.find("h1: 1 process of job aa could not be ended:\n"), std::string::npos) << text;
  EXPECT_NE(text.find("h1: job bb is running, 2 processes, not touched:\n"), std::string::npos) << text;
  EXPECT_NE(text.find("      -        3  ann"), std::string::npos) << text;
}

TEST(CleanReport, HasALinePerJobForItsDirectories) {
  auto result = result_of({});
  const auto add = [&](LeftState state, const std::string& job, const std::string& path) {
    result.hosts[0].found.directories.push_back({state, job, path});
  };
  add(LeftState::kLeft, "0123456789abcdef", "/sys/fs/cgroup/drun-0123456789abcdef-7-1");
  add(LeftState::kLeft, "bb", "/tmp/drun-bb-xyz");
  add(LeftState::kLeft, "0123456789ab", "/tmp/drun-0123456789ab-hVd8bG");
  EXPECT_EQ(clean_table(result, 0),
            "h1: job 0123456789abcdef left 2 directories\n"
            "h1: job bb left a directory\n");
  for (auto& directory : result.hosts[0].found.directories) directory.state = LeftState::kEnded;
  result.hosts[0].found.directories[0].state = LeftState::kSurvived;
  EXPECT_EQ(clean_table(result, 0),
            "h1: could not remove a directory of job 0123456789abcdef: /sys/fs/cgroup/drun-0123456789abcdef-7-1\n"
            "h1: removed a directory of job bb\n"
            "h1: removed a directory of job 0123456789ab\n");
}

TEST(CleanReport, SaysWhenThereIsNothing) { EXPECT_EQ(clean_table(result_of({}), 0), "h1: nothing left\n"); }

TEST(CleanReport, OnlyWhatWasNotEndedIsLeft) {
  EXPECT_FALSE(anything_left(result_of({})));
  EXPECT_FALSE(anything_left(result_of({process(LeftState::kEnded, "aa", 0, 1)})));
  EXPECT_FALSE(anything_left(result_of({process(LeftState::kRunning, "aa", 0, 1)})));
  EXPECT_TRUE(anything_left(result_of({process(LeftState::kLeft, "aa", 0, 1)})));
  EXPECT_TRUE(anything_left(result_of({process(LeftState::kSurvived, "aa", 0, 1)})));
  auto directory = result_of({});
  directory.hosts[0].found.directories.resize(1);
  EXPECT_TRUE(anything_left(directory));
}

TEST(CleanReport, JsonHasTheSame) {
  auto result = result_of({process(LeftState::kSurvived, "aa", -1, 4711)});
  result.errors.push_back(Error(Errc::kUnreachable, "h2", "connect: refused"));
  const std::string text = clean_json(result);
  for (const char* part :
       {"\"schema\": 1", "\"name\": \"h1\"", "\"state\": \"survived\"", "\"job\": \"aa\"", "\"rank\": null",
        "\"pid\": 4711", "\"age_seconds\": 125", "\"host\": \"h2\"", "connect: refused"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
  }
}

TEST(CleanReport, AgesAreShort) {
  EXPECT_EQ(age_text(0), "0s");
  EXPECT_EQ(age_text(59), "59s");
  EXPECT_EQ(age_text(3599), "59m");
  EXPECT_EQ(age_text(3600 + 300), "1h05m");
  EXPECT_EQ(age_text(86400 * 400 + 3600), "400d01h");
}

}  // namespace
}  // namespace drun::cli
