// The network of a job: which interface each host uses, and who can connect to whom. docs/netdetect.md.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "base/asio.h"
#include "launcher/connect/agent_channel.h"
#include "launcher/connect/start_watch.h"
#include "launcher/network/network.h"
#include "launcher/network/probe_cache.h"
#include "launcher/report/events.h"
#include "launcher/report/reporter.h"

namespace drun::launcher {

// Owned by the job, on its thread; what it is given outlives it.
class JobNetwork {
 public:
  // `cache_directory`: of what earlier jobs found; "": none. `reads_cache`: else it is only written.
  JobNetwork(asio::io_context& io, Reporter& reporter, Events& events, StartWatch& watch,
             const std::string& cache_directory, bool reads_cache)
      : io_(io),
        reporter_(reporter),
        events_(events),
        watch_(watch),
        cache_(cache_directory),
        reads_cache_(reads_cache) {}

  // Asks the agents, or the cache, and tells the user what was chosen. `head`: the index of the host that runs drun,
  // -1: none. `interfaces`: --network-interfaces. `known`: what a check found a moment ago.
  Task<Result<void>> find(std::vector<AgentChannel*> hosts, int head, std::vector<std::string> interfaces,
                          std::optional<NetworkProbe> known, Deadline deadline);
  const netdetect::Choice& choice() const { return choice_; }
  // The first host that every other can connect to: MASTER_ADDR is rank 0's host. -1: there is none.
  int reached_by_all() const;
  // This host becomes the first one; the others follow in their order.
  void move_to_front(int host);
  // The job failed: if that was due to the network, what was found is no longer true; else it costs little to find it
  // again.
  void forget();

 private:
  Task<Result<NetworkProbe>> probe(std::vector<AgentChannel*> hosts, int head, std::vector<std::string> interfaces,
                                   Deadline deadline);
  void report(const std::vector<AgentChannel*>& hosts, const NetworkProbe& probe);

  asio::io_context& io_;
  Reporter& reporter_;
  Events& events_;
  StartWatch& watch_;
  ProbeCache cache_;
  bool reads_cache_;
  std::string cache_key_;  // of what was found; "" = nothing was
  netdetect::Choice choice_;
};

}  // namespace drun::launcher
