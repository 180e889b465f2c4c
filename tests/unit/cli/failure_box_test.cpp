#include "cli/failure_box.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/clean_text.h"
#include "base/text.h"
#include "base/text_width.h"
#include "cli/json_report.h"
#include "tests/hostile_text.h"

namespace drun::cli {
namespace {

using launcher::JobFailure;
using launcher::JobReport;
using ::testing::EndsWith;

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
  f.what = "killed by SIGKILL (killed)";
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
  EXPECT_NE(text.find("drun: error: rank 3 on node7 (pid 812): killed by SIGKILL (killed) while ranks 0-2 waited in "
                      "allreduce #1284 'grad.17' [worker-signal]\n"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("  | while ranks 0-2 waited in allreduce #1284 'grad.17'\n"
                      "  | and rank 5 waited in recv #2 from rank 4\n"
                      "  | it had been in allreduce #1284 'grad.17' for 2.5 s\n"),
            std::string::npos)
      << text;
  auto json = nlohmann::json::parse(to_json(report))["first_failure"];
  EXPECT_EQ(json["waited"][0]["call"], "allreduce #1284 'grad.17'");
  EXPECT_EQ(json["waited"][0]["ranks"], (std::vector<int>{0, 1, 2}));
  EXPECT_EQ(json["first"][0]["last_call"]["operation"], "allreduce");
  EXPECT_EQ(json["first"][0]["last_call"]["seq"], 1284);
  EXPECT_EQ(json["first"][0]["last_call"]["state"], "open");

  report.failure->first[0].last_call->ended = true;
  EXPECT_NE(format_failure(report, {}).find("  | its last call, allreduce #1284 'grad.17', had ended 2.5 s before\n"),
            std::string::npos);
  report.failure->first[0].last_call->status = -5;
  EXPECT_NE(format_failure(report, {}).find("'grad.17', had failed 2.5 s before\n"), std::string::npos);
  json = nlohmann::json::parse(to_json(report))["first_failure"];
  EXPECT_EQ(json["first"][0]["last_call"]["state"], "failed");
}

// The box of a failure with a text of others in every field: as many lines as with a harmless text.
std::string box_with(const std::string& text) {
  auto report = job_of(4);
  auto f = killed(3);
  f.host = text;
  f.what = "called abort: " + text;
  f.out_of_memory = text;
  f.own_error = text;
  f.complaint = text;
  f.details = {text};
  f.last_lines = {text};
  f.last_call.emplace();
  f.last_call->text = text;
  report.failure.emplace();
  report.failure->first = {f};
  report.failure->said = {{{0, 1}, text}};
  report.failure->waited = {{{0}, text}};
  EXPECT_EQ(clean_text(to_json(report)), to_json(report));
  return format_failure(report, {});
}

TEST(FailureBox, NoTextCommandsTheTerminalOrForgesALine) {
  const std::string text = box_with(testing::kHostile), harmless = box_with("why");
  EXPECT_EQ(clean_text(text), text);
  // The error file alone may have several lines.
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), std::count(harmless.begin(), harmless.end(), '\n') + 1);
  EXPECT_EQ(text.find("\n  | forged"), std::string::npos) << text;
  EXPECT_NE(text.find("  | its libdrun says: " + testing::kHostileInOneLine + "\n"), std::string::npos) << text;
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
            "drun: error: rank 3 on node7 (pid 812): killed by SIGKILL (killed) [out-of-memory]\n"
            "  +- first failure -----------------------------------------------------------\n"
            "  | rank 3 on node7 (pid 812) was killed by SIGKILL (killed), 12.4 s after the start\n"
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
  EXPECT_EQ(format_failure(report, {}),
            "drun: error: rank 0 on node7 (pid 812): killed by SIGKILL (killed) [worker-signal]\n");
}

TEST(FailureBox, NamesAllThatCannotBeToldApart) {
  auto report = job_of(4);
  report.failure.emplace();
  report.failure->first = {killed(1), killed(2)};
  report.failure->uncertainty_s = 0.0004;
  const auto text = format_failure(report, {});
  EXPECT_NE(text.find("within 800 us of each other"), std::string::npos) << text;
  EXPECT_NE(text.find("| rank 1 on node7"), std::string::npos) << text;
  EXPECT_NE(text.find("| rank 2 on node7"), std::string::npos) << text;
}

JobFailure raised(int rank, const std::string& host) {
  JobFailure f;
  f.rank = rank;
  f.local_rank = rank % 2;
  f.host = host;
  f.pid = 800 + rank;
  f.exit_code = f.status = 1;
  f.what = "exited with status 1";
  f.last_lines = {"rank " + std::to_string(rank) + " at step " + std::to_string(40 + rank),
                  "Traceback (most recent call last):",
                  "  File \"/home/me/a/rather/long/path/to/the/training/script/of/this/test.py\", line 12, in <module>",
                  "ValueError: bad batch on cuda:" + std::to_string(rank % 2) + " of rank " + std::to_string(rank)};
  return f;
}

TEST(FailureBox, AWorkerThatWasNotExecutedHasTheCodeOfItsReason) {
  const auto first_line = [](int status) {
    auto report = job_of(4);
    report.failure.emplace();
    JobFailure f = raised(1, "node1");
    f.exit_code = -1;
    f.status = status;
    f.what = "why";
    report.failure->first = {f};
    const std::string text = format_failure(report, {});
    return text.substr(0, text.find('\n'));
  };
  EXPECT_THAT(first_line(127), EndsWith("[not-found]"));
  EXPECT_THAT(first_line(126), EndsWith("[not-executable]"));
  EXPECT_THAT(first_line(75), EndsWith("[deadline]"));
  EXPECT_THAT(first_line(1), EndsWith("[peer-failed]")) << "it called abort";
}

TEST(FailureBox, TellsTheSameTracebackOfManyRanksOnce) {
  auto report = job_of(4);
  report.failure.emplace();
  report.failure->first = {raised(2, "node7"), raised(0, "node1"), raised(1, "node1"), raised(3, "node7")};
  report.failure->uncertainty_s = 0.0004;
  report.failed_after_s = 0.5;
  EXPECT_EQ(
      format_failure(report, {}),
      "drun: error: ranks 0-3 on node7 and node1: exited with status 1 [worker-exit]\n"
      "  +- first failure -----------------------------------------------------------\n"
      "  | ranks 0-3 on node7 and node1 exited with status 1, within 800 us of each other, which is as near as the "
      "clocks tell, 500 ms after the start\n"
      "  | their last 3 lines (the same except rank, pid and host), of rank 2 on node7 (pid 802):\n"
      "  |   Traceback (most recent call last):\n"
      "  |     File \"/home/me/a/rather/long/path/to/the/training/script/of/this/test.py\", line 12, in <module>\n"
      "  |   ValueError: bad batch on cuda:0 of rank 2\n"
      "  +---------------------------------------------------------------------------\n");
}

TEST(FailureBox, NamesTheRanksThatFailedInTheSameWayLater) {
  auto report = job_of(4);
  report.failure.emplace();
  report.failure->first = {raised(2, "node7")};
  report.failure->consequences = {raised(3, "node7"), killed(0)};
  report.failure->wrote_the_same = {1};
  const auto text = format_failure(report, {});
  EXPECT_NE(text.find("  | its last 4 lines:\n"), std::string::npos) << text;
  EXPECT_NE(text.find("rank 2\n  | ranks 1,3 failed in the same way\n"), std::string::npos) << text;
}

TEST(FailureBox, TellsLastCallsOfRanksThatFailedInTheSameWay) {
  auto report = job_of(4);
  report.failure.emplace();
  report.failure->first = {raised(0, "node1"), raised(1, "node1"), raised(2, "node7")};
  for (auto& f : report.failure->first) f.last_call.emplace().text = "barrier #4";
  EXPECT_NE(format_failure(report, {}).find("| all of them had been in barrier #4 for 0 s\n"), std::string::npos);
  report.failure->first[1].last_call->text = "barrier #5";
  const auto text = format_failure(report, {});
  EXPECT_NE(text.find("| ranks 0,2 had been in barrier #4 for 0 s\n"), std::string::npos) << text;
  EXPECT_NE(text.find("| rank 1 had been in barrier #5 for 0 s\n"), std::string::npos) << text;
}

// No row is wider than the terminal, and each starts with the bar.
TEST(FailureBox, IsAsWideAsTheTerminal) {
  auto report = job_of(4);
  report.failure.emplace();
  report.failure->first = {raised(2, "node7")};
  report.failure->first[0].own_error = std::string(100, 'x');
  report.failure->consequences = {raised(1, "node1")};
  report.failure->said = {{{0, 3}, "Connection closed by peer"}};
  report.n_ended_by_drun = 1;
  for (const std::size_t columns : {40u, 60u, 80u, 200u}) {
    BoxStyle style;
    style.columns = columns;
    style.utf8 = style.color = true;
    const std::string text = format_failure(report, style);
    const auto rows = split(text, '\n');
    const std::size_t rule = std::min<std::size_t>(columns, 78);
    EXPECT_EQ(text_width(rows[1]), rule) << text;
    EXPECT_EQ(text_width(rows[rows.size() - 2]), rule) << text;
    for (std::size_t i = 2; i + 2 < rows.size(); ++i) {
      EXPECT_EQ(rows[i].find("  \033[31m│\033[0m "), 0u) << rows[i];
      EXPECT_LE(text_width(rows[i]), columns) << text;
    }
    const bool is_whole = text.find("script/of/this/test.py\", line 12, in <module>\n") != std::string::npos;
    EXPECT_EQ(is_whole, columns == 200) << "what can be copied is not broken without need\n" << text;
  }
}

TEST(FailureBox, IsNotThereWithoutAFailure) { EXPECT_EQ(format_failure(job_of(2), {}), ""); }

TEST(JsonReport, HasTheJobItsRanksAndTheFirstFailure) {
  auto report = job_of(2);
  report.begin = std::chrono::system_clock::time_point(std::chrono::milliseconds(1500));
  report.failure.emplace();
  report.failure->first = {killed(0)};
  report.ranks[1].cpus = "0-3,16-19";
  const auto json = nlohmann::json::parse(to_json(report));
  EXPECT_EQ(json["schema"], 1);
  EXPECT_EQ(json["begin"], "1970-01-01T00:00:01.500Z");
  EXPECT_EQ(json["status"], 137);
  EXPECT_EQ(json["first_failure"]["first"][0]["signal"], 9);
  EXPECT_EQ(json["first_failure"]["first"][0]["exit_code"], nullptr);
  EXPECT_EQ(json["ranks"].size(), 2u);
  EXPECT_EQ(json["ranks"][1]["ended_by_drun"], true);
  EXPECT_EQ(json["ranks"][1]["signal"], 15);
  EXPECT_TRUE(json["ranks"][0]["cpus"].is_null());
  EXPECT_EQ(json["ranks"][1]["cpus"], "0-3,16-19");
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
