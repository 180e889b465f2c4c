// A job and how it ended, for the box on stderr and for --report.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "launcher/report/first_failure.h"

namespace drun::launcher {

struct RankReport {
  int rank = 0;
  std::string host;
  int pid = 0;                     // 0: it was not started
  std::optional<int> wait_status;  // as from waitpid; nothing: unknown (its host was lost)
  bool ended_by_drun = false;
  std::optional<double> seconds;  // from its start to its end
  std::string cpus;               // the CPUs it was bound to, "0-3,16-19"; "" = --bind-to was not given
};

struct JobReport {
  std::string job_id;
  std::vector<std::string> command;
  std::string working_directory;
  std::chrono::system_clock::time_point begin;
  double seconds = 0;  // from begin to the end
  int status = 0;      // drun's exit status
  std::string why;     // why it ended, unless all workers exited with 0
  std::vector<std::string> hosts;
  std::string allocation;         // the batch scheduler's job of the hosts: "Slurm job 4"; "" = the user named them
  std::vector<RankReport> ranks;  // empty: nothing was started
  std::optional<FirstFailure> failure;
  double failed_after_s = 0;  // the first failure, from the start of the workers
  int n_ended_by_drun = 0;    // workers, because of the failure
};

}  // namespace drun::launcher
