// Measuring the way to another host: round trips, bandwidth, path MTU. Runs in each agent: a listener, and measurements
// against the listeners of others. Every byte between the two: docs/protocol.md.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/asio.h"
#include "base/error.h"
#include "netdetect/link_target.h"
#include "netdetect/stopping.h"

namespace drun::netdetect {

// Listens on a free port of every address, as ProbeListener does, with the same proof. Bounded: 256 connections, of
// which the oldest one that has proven nothing makes room; each ends by a deadline. Destroy it after stop() and join().
class LinkListener {
 public:
  static Result<std::unique_ptr<LinkListener>> start(const asio::any_io_executor& executor, std::string token);
  virtual ~LinkListener() = default;
  virtual int port() const = 0;
  virtual void stop() = 0;
  virtual Task<void> join() = 0;
};

// Measures all targets at once; results are in the order of `targets`. A target that vanishes costs a few seconds over
// the times above, and is an error of that result alone. After stop() it returns soon.
Task<std::vector<LinkResult>> measure_links(std::vector<LinkTarget> targets, std::string token,
                                            std::shared_ptr<Stopping> stopping);

}  // namespace drun::netdetect
