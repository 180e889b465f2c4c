// Finds the network that the hosts have in common: asks the agents to try each other's addresses, then chooses.
#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/asio.h"
#include "launcher/connect/agent_channel.h"
#include "launcher/connect/start_watch.h"
#include "launcher/network/probe_cache.h"
#include "netdetect/choose.h"
#include "netdetect/choose_subset.h"

namespace drun::launcher {

// All that the hosts found out about each other. Indices are those of the hosts passed to probe_network().
struct NetworkProbe {
  std::vector<netdetect::HostInterfaces> inventories;
  netdetect::Candidates candidates;
  std::vector<netdetect::AttemptResult> results;  // by (from, candidate), ascending; the last attempt of each
  std::map<int, Error> lost;                      // hosts that were lost or did not answer in time
  // The choice for all hosts except those in `lost` and those at fault; netdetect/choose_subset.h.
  netdetect::PartialChoice most;
  std::string cache_key;                    // "": there was nothing to try
  std::optional<std::chrono::seconds> age;  // age of `results` from the cache; nothing: tried now

  // The choice for a job, which needs all hosts. Errors: those of choose(); kTimeout or kUnreachable, with every
  // missing host.
  Result<netdetect::Choice> choice() const;
};

// Writes the results to the cache if they may be used again: every host is there, and is reached by all hosts that
// tried it. Otherwise drops the cache entry of these hosts.
void keep(const ProbeCache& cache, const NetworkProbe& probe);

// Probes the network; a faulty host costs only the results that concern it. `head`: index of this machine, which every
// host tries as well because the rendezvous is there; -1: none. `wanted`: --network-interfaces; a word that matches
// nothing is the only error. A silent host delays the result until the deadline. `watch` may be null.
//
// An entry of `cache`, which may be null, for these hosts is used instead of probing. Nothing is written to the cache:
// keep() does that once everything is known.
Task<Result<NetworkProbe>> probe_network(asio::io_context& io, std::vector<AgentChannel*> hosts, int head,
                                         std::vector<std::string> wanted, Deadline deadline,
                                         StartWatch* watch = nullptr, const ProbeCache* cache = nullptr);

}  // namespace drun::launcher
