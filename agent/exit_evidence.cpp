#include "agent/exit_evidence.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"

namespace drun::agent {

void add_evidence(control::Exited& report, OomWatch& oom, const std::function<std::string()>& read_error_file) {
  const int status = report.wait_status;
  if (report.ended_by_drun || status == 0) return;
  // A shell in between reports its child's SIGKILL as 128 + 9.
  const bool killed = (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) ||
                      (WIFEXITED(status) && WEXITSTATUS(status) == 128 + SIGKILL);
  if (killed) report.out_of_memory = oom.evidence(report.pid);
  report.error_file = read_error_file();
}

std::string read_error_file(int directory, const std::string& name) {
  constexpr std::size_t kLimit = 64u << 10;
  const Fd file(::openat(directory, name.c_str(), O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_NOCTTY | O_CLOEXEC));
  struct stat s {};
  if (!file || ::fstat(file.get(), &s) != 0 || !S_ISREG(s.st_mode)) return "";
  return read_to_end(file.get(), kLimit).value_or("");
}

}  // namespace drun::agent
