// What failed first? Everything that went wrong in a job is collected until all workers are over; then the failures
// that are only consequences are told from the cause: evidence before time. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "launcher/clock_alignment.h"

namespace drun::launcher {

// A worker that ended badly and was not ended by drun, or a host that was lost.
struct JobFailure {
  int rank = -1;       // -1: the host as a whole
  std::string host;    // its name in the job
  int pid = 0;         // 0: unknown
  int status = 0;      // drun's exit status if this was the first
  int exit_code = -1;  // of the worker; -1: it did not exit by itself
  int signal = 0;      // that ended it; 0: none
  bool core_dumped = false;
  std::string what;                     // "was ended by SIGKILL (killed)", "exited with status 3"; follows the name
  Moment when;                          // of the end, on drun's clock
  std::string out_of_memory;            // the kernel's word for it; "" = none
  std::string own_error;                // its own account: torch's error file
  std::string complaint;                // what its libdrun told: which peer failed it
  std::vector<std::string> details;     // other facts, a line each
  std::vector<std::string> last_lines;  // that it wrote

  std::string name() const;  // "rank 3 on node7 (pid 812)", "host node7"
};

// What ranks that failed in consequence said, equal words together.
struct Said {
  std::vector<int> ranks;
  std::string text;
};

struct FirstFailure {
  std::vector<JobFailure> first;  // more than one: their order can't be told
  double uncertainty_s = 0;       // of times on different hosts, for that case
  std::vector<JobFailure> consequences;
  std::vector<Said> said;
};

// `stop_ns`: when drun ordered the end; what certainly happened later is its consequence. `failures` is not empty.
FirstFailure find_first_failure(std::vector<JobFailure> failures, std::int64_t stop_ns);

// Do these lines say that another process of the job went away (NCCL's, Gloo's, torch's words for it)?
bool blames_a_peer(const std::vector<std::string>& last_lines);
// The line that says most: the last that looks like an error, else the last. "" if there is none.
std::string telling_line(const std::vector<std::string>& last_lines);
// The message in the file that torch's @record writes; "" if it is not such a file.
std::string torch_error(std::string_view json);

}  // namespace drun::launcher
