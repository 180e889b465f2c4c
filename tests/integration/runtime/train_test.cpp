// The example program learns, gives the same model with one rank and with several, and reports errors clearly.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>

#include "tests/integration/runtime/job_server.h"

namespace drun {
namespace {

using testing::JobOptions;
using testing::run_job;
using testing::WorkerEnd;

// The number that follows the last `label` in `text`.
double number_after(const std::string& text, const std::string& label) {
  const auto place = text.rfind(label);
  return place == std::string::npos ? std::nan("") : std::strtod(text.c_str() + place + label.size(), nullptr);
}

std::vector<WorkerEnd> train(int size, std::vector<std::string> options = {}) {
  JobOptions job;
  job.size = size;
  options.insert(options.begin(), TRAIN_PATH);
  return run_job(options, job);
}

std::size_t lines(const std::string& text) {
  return static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
}

TEST(Train, LearnsTheSameModelOnOneAndOnThreeRanks) {
  const auto one = train(1), three = train(3);
  for (const auto* job : {&one, &three}) {
    for (const auto& end : *job) ASSERT_EQ(end.status, 0) << end.output;
    EXPECT_GT(number_after(job->front().output, "test accuracy "), 95.0) << job->front().output;
  }
  for (const std::string label : {"final loss ", "norm "}) {
    const double alone = number_after(one[0].output, label), together = number_after(three[0].output, label);
    EXPECT_LE(std::abs(alone - together), 1e-4 * alone) << label;
  }
  EXPECT_NE(three[0].output.find("the same on 3 of 3 ranks"), std::string::npos) << three[0].output;
  EXPECT_EQ(lines(three[1].output), 1u) << three[1].output;
  EXPECT_NE(three[1].output.find("rank 1 of 3"), std::string::npos);
}

// A short run shows that it learns. The methods send less than the whole gradient, or less exact numbers.
TEST(Train, LearnsByEveryMethodTheSameModelOnAllRanks) {
  for (const std::string method : {"fp16", "bf16", "topk=0.01", "threshold=0.001", "partial", "partial=7"}) {
    const auto ends = train(3, {"--epochs=12", "--bucket-mib=0.01", "--compression", method});
    for (const auto& end : ends) ASSERT_EQ(end.status, 0) << method << ": " << end.output;
    EXPECT_GT(number_after(ends[0].output, "test accuracy "), 94.0) << method << ": " << ends[0].output;
    EXPECT_NE(ends[0].output.find("the same on 3 of 3 ranks"), std::string::npos) << method << ": " << ends[0].output;
  }
}

TEST(Train, WhatIsAPartForOneRankIsEverything) {
  const auto dense = train(1, {"--epochs=2"}), partial = train(1, {"--epochs=2", "--compression=partial"});
  ASSERT_EQ(partial[0].status, 0) << partial[0].output;
  EXPECT_EQ(number_after(dense[0].output, "norm "), number_after(partial[0].output, "norm "));
}

TEST(Train, WritesOneCheckpoint) {
  char directory[] = "/tmp/drun-train-XXXXXX";
  ASSERT_NE(::mkdtemp(directory), nullptr);
  const std::string path = std::string(directory) + "/model";
  for (const auto& end : train(2, {"--epochs=1", "--checkpoint", path})) EXPECT_EQ(end.status, 0) << end.output;
  std::ifstream in(path);
  std::string magic;
  int version = 0, epochs = 0;
  std::size_t count = 0, n_values = 0;
  in >> magic >> version >> epochs >> count;
  for (double value; in >> value;) ++n_values;
  EXPECT_EQ(magic, "drun-example-digits");
  EXPECT_GT(count, 1000u);
  EXPECT_EQ(n_values, count);
  EXPECT_EQ(::unlink(path.c_str()), 0);
  EXPECT_EQ(::rmdir(directory), 0) << "something else was left";
}

TEST(Train, SaysWhatIsWrong) {
  struct Case {
    std::vector<std::string> options;
    int status;
    std::string text;
  };
  for (const auto& [options, status, text] :
       {Case{{"--epochs", "0"}, 2, "--epochs: '0'"}, Case{{"--epoch", "3"}, 2, "unknown option '--epoch'"},
        Case{{"--compression", "topk=2"}, 2, "--compression: 'topk=2': a fraction above 0, at most 1"},
        Case{{"--compression=zip"}, 2, "'zip' is none of none, fp16, bf16"},
        Case{{"--bucket-mib", "0"}, 2, "--bucket-mib: '0'"},
        Case{{"--data", "/nonexistent.csv"}, 1, "/nonexistent.csv: No such file"},
        Case{{"--epochs=1", "--checkpoint", "/nonexistent/m"}, 1, "checkpoint /nonexistent/m: No such"}}) {
    const auto ends = train(1, options);
    EXPECT_EQ(ends[0].status, status) << ends[0].output;
    EXPECT_NE(ends[0].output.find(text), std::string::npos) << ends[0].output;
  }
}

}  // namespace
}  // namespace drun
