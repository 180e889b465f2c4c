// Finding the network that the hosts have in common: asks the agents to try each other's addresses, then chooses.
#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/asio.h"
#include "launcher/connect/host_link.h"
#include "launcher/connect/start_watch.h"
#include "launcher/network/probe_cache.h"
#include "netdetect/choose.h"
#include "netdetect/choose_most.h"

namespace drun::launcher {

// All that the hosts found out about each other. Indices are those of the hosts that were given.
struct NetworkProbe {
  std::vector<netdetect::HostInterfaces> inventories;
  netdetect::Candidates candidates;
  std::vector<netdetect::AttemptResult> results;  // by (from, candidate), ascending; the last try of each
  std::map<int, Error> lost;                      // hosts that were lost, or did not answer in time
  // Of all hosts but those in `lost` and those at fault; netdetect/choose_most.h.
  netdetect::PartialChoice most;
  std::string cache_key;                    // "" = there was nothing to try
  std::optional<std::chrono::seconds> age;  // nothing: tried now; else `results` are from the cache

  // For a job, in which no host may be missing. Errors: of choose(); kTimeout or kUnreachable, with every host that is
  // missing.
  Result<netdetect::Choice> choice() const;
};

// Writes what was found to the cache if it may be used again: every host is there, and reached by all that tried it.
// Else what the cache has of these hosts is dropped.
void keep(const ProbeCache& cache, const NetworkProbe& probe);

// Tries, and gives up only what concerns a host at fault. `head`: index of this machine, which every host tries as well
// since the rendezvous is there; -1 = none. `wanted`: --network-interfaces; a word that fits nothing is the one error.
// A silent host costs the time until the deadline. `watch` may be null.
//
// What `cache`, which may be null, has of these hosts is taken in place of trying. Nothing is written: keep() does
// that, once all is known.
Task<Result<NetworkProbe>> probe_network(asio::io_context& io, std::vector<HostLink*> hosts, int head,
                                         std::vector<std::string> wanted, Deadline deadline,
                                         StartWatch* watch = nullptr, const ProbeCache* cache = nullptr);

}  // namespace drun::launcher
