// Which peers try which addresses, and which NIC each host gets. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/error.h"
#include "netdetect/candidates.h"
#include "netdetect/probe_target.h"

namespace drun::netdetect {

// One attempt: host `from` tries candidate `candidate` of another host.
struct Attempt {
  int from = 0;
  int candidate = 0;  // index into Candidates::tried
};

// All pairs up to 32 hosts; beyond that a ring plus random pairs (from `seed`), every host tried by at least 4 others
// (fewer only if fewer are in another network namespace). A pair is tried at all candidates of the tried host.
std::vector<Attempt> plan_attempts(int n_hosts, const Candidates& candidates, std::uint64_t seed);

struct AttemptResult {
  Attempt attempt;
  ProbeResult result;
};

struct HostChoice {
  std::string interface;  // the one for GLOO, TP and MASTER_ADDR
  Address address;        // its address
  // For NCCL, best first: all good NICs of the same (known) speed, kind and family; 16 at most, as NCCL uses no more.
  std::vector<std::string> interfaces;
  bool reached_by_all = true;  // every host that tried it reached it
};

struct Choice {
  std::vector<HostChoice> hosts;  // by host index
  // reach[i][j]: host i reached host j at j's chosen address (1), did not (0), or never tried (-1). 1 for itself and
  // for hosts of one network namespace.
  std::vector<std::vector<int>> reach;
  std::vector<std::string> notes;     // for -v: what was chosen and why
  std::vector<std::string> warnings;  // hosts that connect in one direction only
};

// A candidate is good if a peer tried it and every one that did reached it (its peers: the hosts in another network
// namespace). Best first: highest speed (measured, else the driver's; unknown is lowest), RDMA, no tunnel, IPv4 before
// IPv6, on a network that most hosts share, lowest route metric, fastest round trip (in steps: 1, 2, 4, 8 ms), name.
// One address family for all hosts of a job if there is one: that whose slowest choice is faster, then IPv4. Hosts of
// one network namespace get the same.
//
// A host without a good candidate gets one that is not (one_way.h): it is enough that of any two hosts that tried each
// other one reached the other at the chosen address. `warnings` says so. Where it is not so: Errc::kUnreachable, whose
// subject is the hosts at fault and whose context lists every address tried of these, by whom and what came back, and
// every rejection with its reason.
//
// With one host: loopback. With several, all in one network namespace: the best candidate, untried; loopback if none.
Result<Choice> choose(const std::vector<HostInterfaces>& hosts, const Candidates& candidates,
                      const std::vector<AttemptResult>& results);

// The same; `guilty` gets the hosts at fault if there is no choice, at least one.
Result<Choice> choose(const std::vector<HostInterfaces>& hosts, const Candidates& candidates,
                      const std::vector<AttemptResult>& results, std::vector<int>& guilty);

}  // namespace drun::netdetect
