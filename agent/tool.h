// Runs programs of the host that report on it, as children with a deadline and a limit on their output.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "agent/forked_call.h"
#include "base/asio.h"

namespace drun::agent {

struct ToolOutput {
  std::string text;     // stdout and stderr; at most the limit
  std::string problem;  // not empty: why it could not be started
  bool late = false;    // not finished at the deadline, or ended by stop()
  bool cut = false;     // reached the limit and was ended
  std::chrono::milliseconds took{0};
};

struct FoundTool {
  std::string path;     // in full; "" if there is none, or if that is not known
  std::string problem;  // not empty: why it is not known
};

// Owned by its user; runs on the agent's thread. stop() ends the running programs, and thereby run().
class Tools {
 public:
  // `path`: directories to search, as in $PATH; the usual directories are searched after them.
  Tools(asio::io_context& io, const std::string& path);

  // The first of these programs that is there. A child looks, because a directory may be on a dead network file system.
  Task<FoundTool> find(std::vector<std::string> names, Deadline deadline);
  // argv[0] is the full path. The child has its own process group and an empty stdin.
  Task<ToolOutput> run(std::vector<std::string> argv, std::map<std::string, std::string> environment, Deadline deadline,
                       std::size_t limit);
  // Called by the agent's reaper for every pid: a program's pid may be reused from now on.
  void reaped(pid_t pid) {
    running_.erase(pid);
    lookups_.reaped(pid);
  }
  void stop();
  bool stopped() const { return stopped_; }

 private:
  asio::io_context& io_;
  ForkedCalls lookups_;
  std::vector<std::string> folders_;
  std::map<std::string, std::string> found_;  // full paths, by name
  std::set<pid_t> running_;                   // not reaped yet
  bool stopped_ = false;
};

}  // namespace drun::agent
