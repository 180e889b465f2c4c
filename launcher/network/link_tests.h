// Measures the links between hosts by orders to their agents, and decides which pairs are measured when. docs/check.md,
// steps 4 and 5.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "base/asio.h"
#include "launcher/connect/agent_channel.h"
#include "netdetect/choose.h"
#include "netdetect/link.h"
#include "netdetect/rounds.h"

namespace drun::launcher {

// The extent of the measurements of each pair.
struct LinkTimes {
  std::uint32_t n_round_trips = 0;
  std::chrono::milliseconds round_trips{};                     // maximum
  std::chrono::milliseconds bandwidth_min{}, bandwidth_max{};  // of one measurement
  bool four_streams = false;
};
LinkTimes quick_link_times();  // for the shortest check, and for a choice between networks by their speed

// Time for one bandwidth measurement if `n_rounds` must fit into `left` and each also takes `beside` for connections.
// Between the minimum and the maximum of `times`; 0 if not even the minimum fits. Pure.
std::chrono::milliseconds bandwidth_time(const LinkTimes& times, std::chrono::milliseconds left, int n_rounds,
                                         std::chrono::milliseconds beside);

// True if some or all of `n_round_trips` messages were lost. Every connection of such a pair is slow and occupies both
// hosts, so the pair is measured last. Pure.
bool lost_messages(const netdetect::Link& link, std::uint32_t n_round_trips);

// Time for which the bandwidth of this pair is measured if `time` is the usual one: long routes need more. Uses the
// shortest round trip, because longer ones may include retransmissions. Pure.
std::chrono::milliseconds stream_time(const netdetect::Link& link, std::chrono::milliseconds time);

// The measurements of one check. `hosts` and `choice.hosts` have the same order, which the indices of pairs and links
// refer to. Agents must have been configured. If a host is lost during the measurements, the results of its pairs are
// missing, and each says why. One call at a time.
class LinkCheck {
 public:
  LinkCheck(asio::io_context& io, std::vector<AgentChannel*> hosts, netdetect::Choice choice, LinkTimes times,
            std::uint64_t max_rate = 0);

  // Sets other addresses of the same hosts, from the next measurement on.
  void use(netdetect::Choice choice) { choice_ = std::move(choice); }

  // Call this first; later calls ask only hosts that were not asked before. A host whose agent can't listen is measured
  // by the hosts that it can connect to.
  Task<void> listen(Deadline deadline);

  // Measures round trips and path MTU of all pairs that can connect, then bandwidth over one connection, then losses at
  // a low rate, then bandwidth over four connections if the depth asks for it; the last two only if there is time.
  // notes() names what did not fit before the deadline.
  Task<std::vector<netdetect::Link>> first_pass(Deadline deadline);

  // Measures these pairs again, one at a time, with no other traffic; slow ones over one connection only, but for
  // longer. Pairs for which there is no time are left out.
  Task<std::vector<netdetect::Link>> measure_again(std::vector<netdetect::HostPair> pairs, Deadline deadline);

  // Measures only the bandwidth of one connection for `time`, in both directions, one pair at a time; longer if the
  // route is long. Pairs for which there is no time are left out.
  Task<std::vector<netdetect::Link>> rates(std::vector<netdetect::HostPair> pairs, std::chrono::milliseconds time,
                                           Deadline deadline);

  // Measures all hosts at once, each sending to the next one in `order`. Empty if there are fewer than two hosts or no
  // time.
  Task<netdetect::RingRate> ring(std::vector<int> order, Deadline deadline);

  const std::vector<std::string>& notes() const { return notes_; }

 private:
  // Sends one order to one agent; `results` are by target, with an error where there is no result.
  Task<void> measure(std::size_t client, std::vector<netdetect::LinkTarget> targets, Deadline deadline,
                     std::vector<netdetect::LinkResult>& results);
  Task<void> listen_on(std::size_t host, Deadline deadline);
  Task<void> measure_pair(netdetect::Link& link, netdetect::LinkTarget wish, Deadline deadline);
  // Measures losses once the bandwidth is known; uses only the time of `wish`.
  Task<void> measure_loss(netdetect::Link& link, netdetect::LinkTarget wish, Deadline deadline);
  using Step = Task<void> (LinkCheck::*)(netdetect::Link&, netdetect::LinkTarget, Deadline);
  // Hosts that are in no running measurement.
  struct Idle {
    explicit Idle(const asio::any_io_executor& executor) : changed(executor) {}
    std::set<int> hosts;
    Event changed;
  };
  Task<void> run_pair(netdetect::Link& link, Step step, netdetect::LinkTarget wish, Deadline deadline, Idle& idle);
  // Measures the pairs in this order, each as soon as both of its hosts are free, as long as there is time for another
  // one that takes `allowed`. `what`: for notes.
  Task<void> run_rounds(const std::vector<netdetect::Round>& rounds, std::vector<netdetect::Link>& links, Step step,
                        netdetect::LinkTarget wish, std::chrono::milliseconds allowed, Deadline deadline,
                        std::string what);
  bool connects(int from, int to) const;
  bool measurable(const netdetect::HostPair& pair) const;
  netdetect::LinkTarget target_of(int client, int server, netdetect::LinkTarget wish);

  asio::io_context& io_;
  std::vector<AgentChannel*> hosts_;
  netdetect::Choice choice_;
  LinkTimes times_;
  std::uint64_t max_rate_;
  std::string token_;
  std::vector<std::uint16_t> ports_;  // by host; 0: its agent does not listen
  std::set<std::size_t> asked_;       // hosts asked to listen
  // Ids of targets. A late answer, even one to an order of an earlier LinkCheck, is recognized by them.
  std::uint32_t next_id_;
  std::vector<std::string> notes_;
};

}  // namespace drun::launcher
