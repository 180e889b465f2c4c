// Measures the path to another host: round trips, bandwidth, path MTU. Each agent runs a listener and measures
// against the listeners of other agents. docs/protocol.md specifies every byte between the two.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/asio.h"
#include "base/error.h"
#include "netdetect/link_target.h"
#include "netdetect/stopping.h"

namespace drun::netdetect {

// Listens on a free port of every address, as ProbeListener does, with the same proof. Bounded: at most 256
// connections without a proof, of which the oldest is closed to make room, and 256 with one; each has a deadline.
// Must not be destroyed before stop() and join().
class LinkListener {
 public:
  static Result<std::unique_ptr<LinkListener>> start(const asio::any_io_executor& executor, std::string token);
  virtual ~LinkListener() = default;
  virtual int port() const = 0;
  virtual void stop() = 0;
  virtual Task<void> join() = 0;
};

// Measures all targets at once; results are in the order of `targets`. A target that vanishes costs a few seconds
// more than the times in LinkTarget, and is an error only in its own result. Returns soon after stop().
Task<std::vector<LinkResult>> measure_links(std::vector<LinkTarget> targets, std::string token,
                                            std::shared_ptr<Stopping> stopping);

}  // namespace drun::netdetect
