// Finds what failed first. All failures of a job are collected until all workers have ended; then consequences are
// separated from the cause: evidence counts before time. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "control/clock_alignment.h"

namespace drun::launcher {

// The last collective that a worker called, from its flight recorder.
struct LastCall {
  std::string text;  // "allreduce #1284 'grad.17'"
  std::string operation, name;
  std::uint32_t comm = 0;  // 0: all ranks
  std::uint64_t seq = 0;
  bool ended = false;
  int status = 0;      // drun_status, if the call has ended
  double seconds = 0;  // from the end of the call, or its start if it has not ended, to the end of the worker
};

// A worker that failed and was not ended by drun, or a host that was lost.
struct JobFailure {
  int rank = -1;  // -1: the host as a whole
  int local_rank = -1;
  std::string host;    // its name in the job
  int pid = 0;         // 0: unknown
  int status = 0;      // drun's exit status if this was the first failure
  int exit_code = -1;  // of the worker; -1: it did not exit by itself
  int signal = 0;      // the signal that killed it; 0: none
  bool core_dumped = false;
  std::string what;           // "killed by SIGKILL (killed)", "exited with status 3"; follows the name
  control::Moment when;       // of the end, on drun's clock
  std::string out_of_memory;  // the kernel's message about it; "" = none
  std::string own_error;      // the worker's own report: torch's error file
  std::string complaint;      // its libdrun's report: which peer failed
  std::optional<LastCall> last_call;
  std::vector<std::string> details;     // other facts, one per line
  std::vector<std::string> last_lines;  // of its output

  std::string name() const;      // "rank 3 on node7 (pid 812)", "host node7"
  std::string sentence() const;  // "rank 3 on node7 (pid 812) was killed by SIGKILL (killed)"
};

// Messages of ranks that failed as a consequence, equal texts together; without ranks whose failure is the same as one
// of the first.
struct Said {
  std::vector<int> ranks;
  std::string text;
};

// Ranks that were in the same call when the first one failed.
struct Waited {
  std::vector<int> ranks;
  std::string text;
  std::uint32_t group = 0;  // the first rank of the communicator
};

struct FirstFailure {
  std::vector<JobFailure> first;  // more than one: their order can't be determined
  double uncertainty_s = 0;       // of times on different hosts, for that case
  std::vector<JobFailure> consequences;
  std::vector<Said> said;
  std::vector<int> wrote_the_same;  // ranks that drun ended, after the first one's traceback; filled in by Supervisor
  std::vector<Waited> waited;       // the call of most ranks first; filled in by CollectiveProgress
};

// `stop_ns`: when drun ordered the workers to end; a failure that certainly happened later is a consequence. `failures`
// must not be empty.
FirstFailure find_first_failure(std::vector<JobFailure> failures, std::int64_t stop_ns);

// True if these lines report that another process of the job was lost (messages of NCCL, Gloo, torch and libdrun).
bool reports_peer_loss(const std::vector<std::string>& last_lines);
// The most informative line: the last that looks like an error, else the last. "" if there is none.
std::string telling_line(const std::vector<std::string>& last_lines);
// The message in the file that torch's @record writes; "" if it is not such a file.
std::string torch_error(std::string_view json);

}  // namespace drun::launcher
