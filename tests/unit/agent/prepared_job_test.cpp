#include "agent/prepared_job.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace drun::agent {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

PreparedJob job_of_two() {
  PreparedJob job;
  job.order.argv = {"./train", "--fast"};
  job.order.environment = {{"A", "shared"}, {"B", "shared"}};
  job.order.working_directory = "/data";
  job.command = "./train";
  WorkerCpus first, second;
  first.cpus = {0, 1};
  second.cpus = {2, 3};
  job.cpus = {first, second};
  return job;
}

TEST(WorkerStart, AWorkersVariablesOverrideTheShared) {
  control::WorkerSpec spec;
  spec.environment = {{"B", "own"}, {"RANK", "1"}};
  const auto environment = worker_start(job_of_two(), control::Spawn(), spec).environment;
  EXPECT_EQ(environment, (std::map<std::string, std::string>{{"A", "shared"}, {"B", "own"}, {"RANK", "1"}}));
}

TEST(WorkerStart, HasTheCommandAndTheSettingsOfTheOrder) {
  control::Spawn order;
  order.pty = true;
  order.umask = 07077;
  order.window.columns = 132;
  const WorkerStart start = worker_start(job_of_two(), order, control::WorkerSpec());
  EXPECT_EQ(start.file, "./train");
  EXPECT_EQ(start.directory, "/data");
  EXPECT_THAT(start.argv, ElementsAre("./train", "--fast"));
  EXPECT_TRUE(start.pty);
  EXPECT_EQ(start.umask, 077u);
  EXPECT_EQ(start.window.columns, 132);
}

TEST(WorkerStart, CpusAreThoseOfTheLocalRank) {
  control::WorkerSpec spec;
  spec.rank = 7;
  spec.local_rank = 1;
  EXPECT_THAT(worker_start(job_of_two(), control::Spawn(), spec).cpus, ElementsAre(2, 3));
  spec.local_rank = 2;
  EXPECT_THAT(worker_start(job_of_two(), control::Spawn(), spec).cpus, IsEmpty());
}

}  // namespace
}  // namespace drun::agent
