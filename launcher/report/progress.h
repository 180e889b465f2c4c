// Progress of the start: every host of the current stage, its phase and since when. Pure: the clock is passed in, and
// the owner draws the line.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "transport/phase.h"

namespace drun::launcher {

// A step that all hosts take together; the next stage begins when all of them have finished this one.
enum class Stage { kConnect, kProbe, kPrepare, kStart };

class Progress {
 public:
  using Time = Clock::time_point;
  using Times = std::vector<std::pair<transport::Phase, std::chrono::duration<double>>>;

  // A slower host is named.
  static constexpr auto kSlow = std::chrono::seconds(2);

  // Hosts are identified by their index in `names` until the next begin().
  void begin(Stage stage, std::vector<std::string> names, Time now);
  // Also for a host that was done: a second round begins.
  void enter(std::size_t host, transport::Phase phase, Time now);
  void done(std::size_t host, Time now);
  void failed(std::size_t host, Time now);

  transport::Phase phase(std::size_t host) const { return hosts_[host].phase; }
  const std::string& name(std::size_t host) const { return hosts_[host].name; }
  // The phases that the host went through, in the order of first entry.
  const Times& times(std::size_t host) const { return hosts_[host].times; }

  // "connecting 14/16: waiting for node7 (login), node9 (connect)", at most `width` columns; "" before begin().
  std::string line(Time now, std::size_t width) const;
  // "connect 16 hosts 0.21 s (slowest node7 0.19 s)".
  std::string summary(Time now) const;
  // "node7: resolve 0.00 s, connect 0.01 s, login 0.12 s"; for a stage of one phase "node7: probe 0.41 s".
  std::string host_summary(std::size_t host) const;

 private:
  enum class State { kWaiting, kDone, kFailed };
  struct HostState {
    std::string name;
    State state = State::kWaiting;
    bool entered = false;
    transport::Phase phase = transport::Phase::kConnect;
    Time since, ended;
    Times times;
  };
  void leave(HostState& host, Time now);

  Stage stage_ = Stage::kConnect;
  Time began_;
  std::vector<HostState> hosts_;
};

}  // namespace drun::launcher
