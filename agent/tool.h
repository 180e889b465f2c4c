// Programs of the host's that tell something about it, run as children with a deadline and a bound on their output.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/asio.h"

namespace drun::agent {

struct ToolOutput {
  std::string text;     // stdout and stderr; at most the limit
  std::string problem;  // not empty: it could not be started
  bool late = false;    // it had not finished when the deadline passed, or stop() ended it
  bool cut = false;     // it had more to say, and was ended
  std::chrono::milliseconds took{0};
};

// Owned by who runs them; the agent's thread. stop() ends those that run, and with them run().
class Tools {
 public:
  // `path`: where they are looked for, as in $PATH; the usual places come behind it.
  Tools(asio::io_context& io, const std::string& path);

  // The full path, or "".
  std::string find(const std::string& name) const;
  // argv[0] is the full path. The child has a process group of its own, and nothing on its stdin.
  Task<ToolOutput> run(std::vector<std::string> argv, std::map<std::string, std::string> environment, Deadline deadline,
                       std::size_t limit);
  // From the agent's reaper: if it was one of these, its pid is nobody's any more.
  void reaped(pid_t pid) { running_.erase(pid); }
  void stop();
  bool stopped() const { return stopped_; }

 private:
  asio::io_context& io_;
  std::vector<std::string> folders_;
  std::set<pid_t> running_;  // not reaped
  bool stopped_ = false;
};

}  // namespace drun::agent
