// A small launcher for tests: the real rendezvous server in a thread, an agent's socket, workers as processes.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <memory>
#include <string>
#include <vector>

namespace drun::testing {

struct WorkerEnd {
  int rank = -1;
  pid_t pid = -1;
  int status = -1;                              // exit status, 128 + signal
  bool killed = false;                          // by the test, because it did not end in time
  bool stopped = false;                         // by a signal; killed once the others have ended
  std::string output;                           // stdout and stderr
  std::chrono::steady_clock::duration after{};  // since the start, until the end or the stop
};

struct JobOptions {
  int size = 2;
  int ranks_per_host = 0;  // 0: all on one host
  bool by_agent = true;    // through an agent's socket; otherwise with DRUN_KEY
  bool shares_memory = false;
  std::vector<std::string> env;
  std::chrono::seconds limit{60};
  bool abort_on_death = true;  // as the launcher does
};

// Runs `argv` once per rank and waits until all have ended.
std::vector<WorkerEnd> run_job(const std::vector<std::string>& argv, const JobOptions& options);

}  // namespace drun::testing
