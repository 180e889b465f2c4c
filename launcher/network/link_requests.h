// The requests to agents by which links are measured: who listens, and who measures whom. docs/protocol.md has the
// messages; link_tests.h decides when which pair is measured.
#pragma once

#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/asio.h"
#include "launcher/connect/agent_channel.h"
#include "netdetect/choose.h"
#include "netdetect/link.h"
#include "netdetect/link_target.h"

namespace drun::launcher {

// Owned by a LinkCheck; one thread. `hosts` and `choice.hosts` have the same order, which all indices refer to. The
// agents have been configured and outlive it. All calls end by their deadline; a host that is lost before makes them
// end with an error.
class LinkRequests {
 public:
  LinkRequests(asio::io_context& io, std::vector<AgentChannel*> hosts, netdetect::Choice choice,
               std::uint64_t max_rate);

  // Sets other addresses of the same hosts, from the next measurement on.
  void use(netdetect::Choice choice) { choice_ = std::move(choice); }

  // Has all agents listen that were not asked before. Returns a text for each that can't.
  Task<std::vector<std::string>> listen(Deadline deadline);

  // True if the agent of `to` listens at an address to which `from` can connect.
  bool connects(int from, int to) const;
  // True if one of the hosts can connect to the other.
  bool measurable(int a, int b) const { return connects(a, b) || connects(b, a); }

  // Measures a pair as `wish` says, and adds the results to `link`, an error where there is no result. The bandwidth
  // of a long route is measured for longer (stream_time()).
  Task<void> measure_pair(netdetect::Link& link, netdetect::LinkTarget wish, Deadline deadline);
  // Measures losses once the bandwidth is known; uses only the time of `wish`.
  Task<void> measure_loss(netdetect::Link& link, netdetect::LinkTarget wish, Deadline deadline);

  // `wish` with the addresses of this pair and an id.
  netdetect::LinkTarget target_of(int client, int server, netdetect::LinkTarget wish);
  // Sends one order to one agent; `results` are by target, with an error where there is no result.
  Task<void> measure(std::size_t client, std::vector<netdetect::LinkTarget> targets, Deadline deadline,
                     std::vector<netdetect::LinkResult>& results);

 private:
  Task<void> listen_on(std::size_t host, Deadline deadline, std::vector<std::string>& notes);

  asio::io_context& io_;
  std::vector<AgentChannel*> hosts_;
  netdetect::Choice choice_;
  std::uint64_t max_rate_;
  std::string token_;
  std::vector<std::uint16_t> ports_;  // by host; 0: its agent does not listen
  std::set<std::size_t> asked_;       // hosts asked to listen
  // Ids of targets. A late answer, even one to an order of an earlier LinkRequests, is recognized by them.
  std::uint32_t next_id_;
};

}  // namespace drun::launcher
