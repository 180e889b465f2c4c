#include "cli/failure_box.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "cli/json_report.h"

namespace drun::cli {
namespace {

using launcher::JobFailure;
using launcher::JobReport;

JobReport job_of(int size) {
  JobReport report;
  report.job_id = "0011";
  report.command = {"./train", "\xff"};
  report.hosts = {"node1", "node7"};
  report.status = 137;
  for (int i = 0; i < size; ++i) {
    launcher::RankReport r;
    r.rank = i;
    r.host = "node7";
    r.pid = 800 + i;
    r.wait_status = i == 0 ? 9 : 15;
    r.ended_by_drun = i != 0;
    r.seconds = 2.5;
    report.ranks.push_back(r);
  }
  return report;
}

JobFailure killed(int rank) {
  JobFailure f;
  f.rank = rank;
  f.host = "node7";
  f.pid = 812;
  f.signal = 9;
  f.status = 137;
  f.what = "was ended by SIGKILL (killed)";
  return f;
}

TEST(FailureBox, TellsTheLastCallAndWhoWaitedInWhat) {
  auto report = job_of(6);
  auto f = killed(3);
  launcher::LastCall call;
  call.text = "allreduce #1284 'grad.17'";
  call.operation = "allreduce";
  call.seq = 1284;
  call.name = "grad.17";
  call.seconds = 2.5;
  f.last_call = call;
  report.failure.emplace();
  report.failure->first = {f};
  report.failure->waited = {{{0, 1, 2}, "allreduce #1284 'grad.17'"}, {{5}, "recv #2 from rank 4"}};
  const std::string text = format_failure(report, {});
  EXPECT_NE(text.find("drun: error: rank 3 on node7 (pid 812): was ended by SIGKILL (killed) while ranks 0-2 waited in "
                      "allreduce #1284 'grad.17'\n"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("  | while ranks 0-2 waited in allreduce #1284 'grad.17'\n"
                      "  | and rank 5 waited in recv #2 from rank 4\n"
                      "  | it had been in allreduce #1284 'grad.17' for 2.50 s\n"),
            std::string::npos)
      << text;
  auto json = nlohmann::json::parse(to_json(report))["first_failure"];
  EXPECT_EQ(json["waited"][0]["call"], "allreduce #1284 'grad.17'");
  EXPECT_EQ(json["waited"][0]["ranks"], (std::vector<int>{0, 1, 2}));
  EXPECT_EQ(json["first"][0]["last_call"]["operation"], "allreduce");
  EXPECT_EQ(json["first"][0]["last_call"]["seq"], 1284);
  EXPECT_EQ(json["first"][0]["last_call"]["state"], "open");

  report.failure->first[0].last_call->ended = true;
  EXPECT_NE(format_failure(report, {}).find("  | its last call, allreduce #1284 'grad.17', had ended 2.50 s before\n"),
            std::string::npos);
  report.failure->first[0].last_call->status = -5;
  EXPECT_NE(format_failure(report, {}).find("'grad.17', had failed 2.50 s before\n"), std::string::npos);
  json = nlohmann::json::parse(to_json(report))["first_failure"];
  EXPECT_EQ(json["first"][0]["last_call"]["state"], "failed");
}

TEST(FailureBox, TellsWhoWhatWhenAndWhy) {
  auto report = job_of(4);
  auto f = killed(3);
  f.out_of_memory = "oom_kill 0 -> 1";
  f.own_error = "MemoryError\nat x";
  f.last_lines = {"step 1", "step 2"};
  report.failure.emplace();
  report.failure->first = {f};
  report.failure->said = {{{0, 1, 2}, "Connection closed by peer"}};
  report.failed_after_s = 12.4;
  report.n_ended_by_drun = 3;
  EXPECT_EQ(format_failure(report, {}),
            "drun: error: rank 3 on node7 (pid 812): was ended by SIGKILL (killed)\n"
            "  +- first failure -----------------------------------------------------------\n"
            "  | rank 3 on node7 (pid 812) was ended by SIGKILL (killed), 12 s after the start\n"
            "  | out of memory: oom_kill 0 -> 1\n"
            "  | its error file says:\n"
            "  |   MemoryError\n"
            "  |   at x\n"
            "  | its last 2 lines:\n"
            "  |   step 1\n"
            "  |   step 2\n"
            "  | ranks 0-2 said: Connection closed by peer\n"
            "  | drun ended the 3 other workers because of it\n"
            "  +---------------------------------------------------------------------------\n");
}

TEST(FailureBox, OfOneWorkerIsALineIfThereIsNoMoreToSay) {
  auto report = job_of(1);
  report.failure.emplace();
  report.failure->first = {killed(0)};
  EXPECT_EQ(format_failure(report, {}), "drun: error: rank 0 on node7 (pid 812): was ended by SIGKILL (killed)\n");
}

TEST(FailureBox, NamesAllThatCannotBeToldApart) {
  auto report = job_of(4);
  report.failure.emplace();
  report.failure->first = {killed(1), killed(2)};
  report.failure->uncertainty_s = 0.0004;
  const auto text = format_failure(report, {});
  EXPECT_NE(text.find("within 0.8 ms of each other"), std::string::npos) << text;
  EXPECT_NE(text.find("| rank 1 on node7"), std::string::npos) << text;
  EXPECT_NE(text.find("| rank 2 on node7"), std::string::npos) << text;
}

TEST(FailureBox, IsNotThereWithoutAFailure) { EXPECT_EQ(format_failure(job_of(2), {}), ""); }

TEST(JsonReport, HasTheJobItsRanksAndTheFirstFailure) {
  auto report = job_of(2);
  report.begin = std::chrono::system_clock::time_point(std::chrono::milliseconds(1500));
  report.failure.emplace();
  report.failure->first = {killed(0)};
  const auto json = nlohmann::json::parse(to_json(report));
  EXPECT_EQ(json["schema"], 1);
  EXPECT_EQ(json["begin"], "1970-01-01T00:00:01.500Z");
  EXPECT_EQ(json["status"], 137);
  EXPECT_EQ(json["first_failure"]["first"][0]["signal"], 9);
  EXPECT_EQ(json["first_failure"]["first"][0]["exit_code"], nullptr);
  EXPECT_EQ(json["ranks"].size(), 2u);
  EXPECT_EQ(json["ranks"][1]["ended_by_drun"], true);
  EXPECT_EQ(json["ranks"][1]["signal"], 15);
}

TEST(JsonReport, OfAJobThatWentWellHasNoFailure) {
  auto report = job_of(0);
  report.status = 0;
  const auto json = nlohmann::json::parse(to_json(report));
  EXPECT_TRUE(json["first_failure"].is_null());
  EXPECT_TRUE(json["why"].is_null());
}

TEST(JsonReport, SaysWhichFileCannotBeWritten) {
  const auto written = write_report(job_of(1), "/no such dir/r.json");
  ASSERT_FALSE(written);
  EXPECT_NE(written.error().message().find("--report: /no such dir/r.json"), std::string::npos)
      << written.error().message();
}

}  // namespace
}  // namespace drun::cli
