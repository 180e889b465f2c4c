// Watchdogs for calls of NCCL and of the driver that may never return. A thread of the process (drun-guard) polls them,
// because the caller is blocked, and holds the turn.
#pragma once

#include <chrono>
#include <string>

namespace drun::runtime::gpu {

class Watchdog {
 public:
  static constexpr std::chrono::milliseconds kInterval{200};

  Watchdog() = default;
  virtual ~Watchdog() = default;
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

 protected:
  // From begin() to end() the thread calls poll(). end() waits for a poll in progress; the destructor of the class that
  // has poll() must call it.
  void begin();
  void end();

 private:
  friend class Watchman;
  // Called every kInterval with the time since the last call, without the time for which the process was stopped.
  virtual void poll(std::chrono::nanoseconds passed) = 0;
};

// Writes "drun: error: TEXT: ending this process" to stderr and exits with status 75, so that the process does not hang
// while it holds a GPU.
[[noreturn]] void end_process(const std::string& text);

// Allows the function `limit` between construction and destruction. Then ends the process: "WHO: FUNCTION has not come
// back for 10 s". Thread-safe.
class HangGuard final : private Watchdog {
 public:
  HangGuard(std::string who, const char* function, std::chrono::milliseconds limit);
  ~HangGuard() override { end(); }

 private:
  void poll(std::chrono::nanoseconds passed) override;

  const std::string who_;
  const char* const function_;
  const std::chrono::milliseconds limit_;
  std::chrono::nanoseconds left_;
};

}  // namespace drun::runtime::gpu
