#include "agent/exit_evidence.h"

#include <signal.h>
#include <sys/wait.h>

#include "base/fd.h"

namespace drun::agent {

namespace {
constexpr std::size_t kErrorFileLimit = 64u << 10;
}

void add_evidence(control::Exited& report, OomWatch& oom, const std::string& error_file) {
  const int status = report.wait_status;
  if (report.ended_by_drun || status == 0) return;
  // A shell in between reports its child's SIGKILL as 128 + 9.
  const bool killed = (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) ||
                      (WIFEXITED(status) && WEXITSTATUS(status) == 128 + SIGKILL);
  if (killed) report.out_of_memory = oom.evidence(report.pid);
  if (!error_file.empty()) report.error_file = read_file(error_file, kErrorFileLimit).value_or("");
}

}  // namespace drun::agent
