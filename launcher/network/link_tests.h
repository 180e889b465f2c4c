// Measuring the links between hosts: who measures whom when, by orders to their agents. docs/check.md, steps 4 and 5.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "base/asio.h"
#include "launcher/connect/host_link.h"
#include "netdetect/choose.h"
#include "netdetect/link.h"
#include "netdetect/rounds.h"

namespace drun::launcher {

// How much is measured of each pair.
struct LinkTimes {
  std::uint32_t n_round_trips = 0;
  std::chrono::milliseconds round_trips{};                        // at most
  std::chrono::milliseconds bandwidth_least{}, bandwidth_most{};  // of one measurement
  bool four_streams = false;
};
LinkTimes quick_link_times();  // of the shortest check, and of a choice between networks by their speed

// How long one bandwidth measurement may take when `n_rounds` have to fit into `left`, of which each also takes
// `beside` for connections: between the least and the most of `times`; 0: not even the least fits. Pure.
std::chrono::milliseconds bandwidth_time(const LinkTimes& times, std::chrono::milliseconds left, int n_rounds,
                                         std::chrono::milliseconds beside);

// Whether messages of so many round trips were lost, or all of them: every connection of such a pair takes its time,
// which is that of both hosts, so it is measured last. Pure.
bool lost_messages(const netdetect::Link& link, std::uint32_t n_round_trips);

// How long the bandwidth of this pair is measured where `time` is meant for all: long ways need more, by the shortest
// round trip (others may have waited for what was lost and sent again). Pure.
std::chrono::milliseconds stream_time(const netdetect::Link& link, std::chrono::milliseconds time);

// The measurements of one check. `hosts` and `choice.hosts` have the same order; indices of pairs and links are into
// them. Agents must have been configured. Hosts that are lost on the way cost the results
// of their pairs, each of which says why. One call at a time.
class LinkCheck {
 public:
  LinkCheck(asio::io_context& io, std::vector<HostLink*> hosts, netdetect::Choice choice, LinkTimes times,
            std::uint64_t max_rate = 0);

  // Other addresses of the same hosts, from the next measurement on.
  void use(netdetect::Choice choice) { choice_ = std::move(choice); }

  // First; again, only those that were not asked. A host whose agent can't listen is measured by those that it can
  // connect to.
  Task<void> listen(Deadline deadline);

  // Round trips and path MTU of all pairs that can connect, then bandwidth over one connection, then what is lost while
  // little is sent, then bandwidth over four if the depth asks for it; both of these if there is time. What did not fit
  // before the deadline is in notes().
  Task<std::vector<netdetect::Link>> first_pass(Deadline deadline);

  // These pairs again, one at a time, with nothing else going on; slow ones over one connection only, but for longer.
  // Those for which there is no time are left out.
  Task<std::vector<netdetect::Link>> measure_again(std::vector<netdetect::HostPair> pairs, Deadline deadline);

  // Only what one connection moves in `time`, both ways, one pair at a time; longer where the way is long. Those for
  // which there is no time are left out.
  Task<std::vector<netdetect::Link>> rates(std::vector<netdetect::HostPair> pairs, std::chrono::milliseconds time,
                                           Deadline deadline);

  // All hosts at once, each to the next one in `order`. Empty if fewer than two hosts, or if there is no time.
  Task<netdetect::RingRate> ring(std::vector<int> order, Deadline deadline);

  const std::vector<std::string>& notes() const { return notes_; }

 private:
  // One order to one agent; `results` are by target, with errors instead where there is none.
  Task<void> measure(std::size_t client, std::vector<netdetect::LinkTarget> targets, Deadline deadline,
                     std::vector<netdetect::LinkResult>& results);
  Task<void> listen_on(std::size_t host, Deadline deadline);
  Task<void> measure_pair(netdetect::Link& link, netdetect::LinkTarget wish, Deadline deadline);
  // What it loses, once it is known what it moves; of `wish` only the time counts.
  Task<void> measure_loss(netdetect::Link& link, netdetect::LinkTarget wish, Deadline deadline);
  using Step = Task<void> (LinkCheck::*)(netdetect::Link&, netdetect::LinkTarget, Deadline);
  // Hosts that are in no pair now.
  struct Idle {
    explicit Idle(const asio::any_io_executor& executor) : changed(executor) {}
    std::set<int> hosts;
    Event changed;
  };
  Task<void> run_pair(netdetect::Link& link, Step step, netdetect::LinkTarget wish, Deadline deadline, Idle& idle);
  // The pairs in this order, each as soon as both of its hosts are free, as long as there is time for another one that
  // takes `allowed`. `what`: for notes.
  Task<void> run_rounds(const std::vector<netdetect::Round>& rounds, std::vector<netdetect::Link>& links, Step step,
                        netdetect::LinkTarget wish, std::chrono::milliseconds allowed, Deadline deadline,
                        std::string what);
  bool connects(int from, int to) const;
  bool measurable(const netdetect::HostPair& pair) const;
  netdetect::LinkTarget target_of(int client, int server, netdetect::LinkTarget wish);

  asio::io_context& io_;
  std::vector<HostLink*> hosts_;
  netdetect::Choice choice_;
  LinkTimes times_;
  std::uint64_t max_rate_;
  std::string token_;
  std::vector<std::uint16_t> ports_;  // by host; 0: its agent does not listen
  std::set<std::size_t> asked_;       // to listen
  // Of targets: an answer that comes too late, also to an earlier LinkCheck, is told by it.
  std::uint32_t next_id_;
  std::vector<std::string> notes_;
};

}  // namespace drun::launcher
