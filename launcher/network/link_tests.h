// The passes in which the links between hosts are measured, and the time that each part of them gets. docs/check.md,
// steps 4 and 5. link_requests.h talks to the agents, pair_scheduler.h chooses the next pair, link_times.h the
// parameters.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/asio.h"
#include "launcher/connect/agent_channel.h"
#include "launcher/network/link_requests.h"
#include "launcher/network/link_times.h"
#include "launcher/network/pair_scheduler.h"
#include "netdetect/choose.h"
#include "netdetect/link.h"
#include "netdetect/rounds.h"

namespace drun::launcher {

// The measurements of one check. `hosts` and `choice.hosts` have the same order, which the indices of pairs and links
// refer to. Agents must have been configured. If a host is lost during the measurements, the results of its pairs are
// missing, and each says why. One call at a time.
class LinkCheck {
 public:
  LinkCheck(asio::io_context& io, std::vector<AgentChannel*> hosts, netdetect::Choice choice, LinkTimes times,
            std::uint64_t max_rate = 0);

  // Sets other addresses of the same hosts, from the next measurement on.
  void use(netdetect::Choice choice) { requests_.use(std::move(choice)); }

  // Call this first; later calls ask only hosts that were not asked before. A host whose agent can't listen is measured
  // by the hosts that it can connect to.
  Task<void> listen(Deadline deadline);

  // Measures round trips and path MTU of all pairs that can connect, then bandwidth over one connection, then losses at
  // a low rate, then bandwidth over four connections if the depth asks for it; the last two only if there is time. The
  // losses of few hosts are counted in any case, for which up to a second more is taken. notes() names what did not fit
  // before the deadline.
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
  using Step = Task<void> (LinkRequests::*)(netdetect::Link&, netdetect::LinkTarget, Deadline);
  Task<void> run_pair(netdetect::Link& link, Step step, netdetect::LinkTarget wish, Deadline deadline,
                      PairScheduler& scheduler, Event& ended);
  // Measures the pairs in this order, each as soon as both of its hosts are free, as long as there is time for another
  // one that takes `allowed`. `what`: for notes.
  Task<void> run_rounds(const std::vector<netdetect::Round>& rounds, std::vector<netdetect::Link>& links, Step step,
                        netdetect::LinkTarget wish, std::chrono::milliseconds allowed, Deadline deadline,
                        std::string what);
  Task<void> count_losses(const std::vector<netdetect::Round>& rounds, std::vector<netdetect::Link>& links,
                          Deadline deadline);

  asio::io_context& io_;
  std::vector<AgentChannel*> hosts_;
  LinkRequests requests_;
  LinkTimes times_;
  std::vector<std::string> notes_;
};

}  // namespace drun::launcher
