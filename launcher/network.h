// Finding the network that the hosts have in common: asks the agents to try each other's addresses, then chooses.
#pragma once

#include <string>
#include <vector>

#include "base/asio.h"
#include "launcher/host_link.h"
#include "launcher/start_watch.h"
#include "netdetect/choose.h"

namespace drun::launcher {

// `head`: index of this machine, which every host tries as well since the rendezvous is there; -1 = none.
// `wanted`: --network-interfaces. Errors: as choose() and find_candidates() give them; kTimeout, with every host that
// is missing, if agents are silent until the deadline. `watch` may be null.
Task<Result<netdetect::Choice>> detect_network(asio::io_context& io, std::vector<HostLink*> hosts, int head,
                                               std::vector<std::string> wanted, Deadline deadline,
                                               StartWatch* watch = nullptr);

}  // namespace drun::launcher
