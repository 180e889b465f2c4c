// Calls functions that may block forever (on a file of a dead network file system, say) in forked children, which can
// be given up: the agent's only thread must go on sending heartbeats.
#pragma once

#include <sys/types.h>

#include <boost/asio/posix/stream_descriptor.hpp>
#include <functional>
#include <map>
#include <optional>
#include <string>

#include "base/asio.h"

namespace drun::agent {

// Names what the function is about to do, "open /data/x", in case that it never returns from it.
using ReportStep = std::function<void(const std::string&)>;
using ForkedFunction = std::function<std::string(const ReportStep&)>;

struct ForkedResult {
  std::optional<std::string> value;  // what the function returned; nothing if it did not return in time
  std::string step;                  // the last that it reported
  bool late = false;                 // the deadline has passed, or stop() was called
  std::string problem;  // why there is neither a value nor `late`: "fork: Resource temporarily unavailable"
};

// Parses what a child writes: its value. Pure.
class ForkedAnswer {
 public:
  void push(std::string_view bytes);
  const std::optional<std::string>& value() const { return value_; }

  static std::string encode(std::string_view value);

 private:
  std::string bytes_;
  std::optional<std::string> value_;
};

// The last step that a child reported, in memory that it shares with the agent: a pipe would wake the agent for each
// step, though only that of a late child is read.
class SharedStep {
 public:
  SharedStep();
  ~SharedStep();
  SharedStep(const SharedStep&) = delete;
  SharedStep& operator=(const SharedStep&) = delete;

  void set(std::string_view step) const;  // the first 4 KiB of it
  std::string get() const;

 private:
  struct Page;
  Page* page_;  // null: there was no memory, and the step stays unknown
};

// Owned by its user; runs on the agent's thread. The children are killed by the kernel if the agent dies.
class ForkedCalls {
 public:
  explicit ForkedCalls(asio::io_context& io) : io_(io) {}

  // The child has no descriptor of the agent's but stderr, and default signal handlers.
  Task<ForkedResult> call(ForkedFunction function, Deadline deadline);
  // Called by the agent's reaper for every pid: a child's pid may be reused from now on.
  void reaped(pid_t pid) { running_.erase(pid); }
  // Kills the children, and thereby ends call().
  void stop();

 private:
  using Stream = asio::posix::stream_descriptor;
  asio::io_context& io_;
  std::map<pid_t, Stream*> running_;  // not reaped yet; nullptr: its call is over
  bool stopped_ = false;
};

}  // namespace drun::agent
