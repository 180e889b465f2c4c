// Runs a part of a test in a network namespace of its own.
#pragma once

#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "base/fd.h"

namespace drun::netdetect::testing {

struct NamespaceRun {
  bool allowed = false;  // false: this user may not make a network namespace
  std::string failed;    // the set-up command that failed; "" = none
  std::string output;    // returned by `body`
};

// Forks; the child unshares the network, brings lo up, runs the shell commands and then `body`. The namespace ends with
// the child, which ends after 40 s at the latest.
template <typename F>
NamespaceRun in_own_namespace(const std::vector<std::string>& commands, F body) {
  NamespaceRun run;
  auto pipe = make_pipe();
  if (!pipe) return run;
  const pid_t child = ::fork();
  if (child == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    ::alarm(40);
    std::string report;
    if (::unshare(CLONE_NEWNET) != 0) {
      report = "u";
    } else {
      std::vector<std::string> all = {"ip link set lo up"};
      all.insert(all.end(), commands.begin(), commands.end());
      for (const auto& command : all) {
        if (std::system(("(" + command + ") >/dev/null 2>&1").c_str()) != 0) {
          report = "f" + command;
          break;
        }
      }
      if (report.empty()) report = "o" + body();
    }
    (void)write_all(pipe->write.get(), report);
    ::_exit(0);
  }
  pipe->write.reset();
  std::string report;
  char buffer[4096];
  for (;;) {
    const ssize_t n = ::read(pipe->read.get(), buffer, sizeof buffer);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    report.append(buffer, static_cast<std::size_t>(n));
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  run.allowed = report.empty() || report[0] != 'u';
  if (report.empty()) run.failed = "the child ended with status " + std::to_string(status);
  if (!report.empty() && report[0] == 'f') run.failed = report.substr(1);
  if (!report.empty() && report[0] == 'o') run.output = report.substr(1);
  return run;
}

// A shell command that waits, at most 10 s, until `command` prints `pattern`.
inline std::string wait_until(const std::string& command, const std::string& pattern) {
  return "i=0; until " + command + " | grep -q '" + pattern +
         "'; do i=$((i + 1)); [ $i -lt 200 ] || exit 1; "
         "sleep 0.05; done";
}

// The kernel notices a new carrier up to a second later.
inline std::string wait_until_running(const std::string& name) {
  return wait_until("ip -o link show " + name, "state UP");
}

// An IPv6 address is listed a moment before the kernel accepts packets for it, even with nodad.
inline std::string wait_until_local(const std::string& address) {
  return wait_until("ip -6 route show table local", "local " + address);
}

}  // namespace drun::netdetect::testing

#define DRUN_SKIP_UNLESS_ALLOWED(run)                                              \
  do {                                                                             \
    if (!(run).allowed) GTEST_SKIP() << "needs root, to make a network namespace"; \
    ASSERT_EQ((run).failed, "");                                                   \
  } while (false)
