// Plans which peers try which addresses, and chooses a NIC for each host. Pure.
#pragma once

#include <cstddef>
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

inline constexpr std::size_t kFullPlanHosts = 32;  // up to this many, every host tries every other

// Plans attempts of all pairs for up to kFullPlanHosts hosts; beyond that of a ring plus random pairs (from `seed`), in
// which at least 4 other hosts try each host, 2 if there are more than 256 (fewer only if fewer are in another network
// namespace). A host tries all candidates of its peer.
std::vector<Attempt> plan_attempts(int n_hosts, const Candidates& candidates, std::uint64_t seed);

struct AttemptResult {
  Attempt attempt;
  ProbeResult result;
};

struct HostChoice {
  std::string interface;  // used for GLOO, TP and MASTER_ADDR
  Address address;        // its address
  // For NCCL, best first: all good NICs of the same (known) speed, kind and family; at most 16, because NCCL uses no
  // more.
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

// Chooses an interface and an address for each host. A candidate is good if at least one peer tried it and all peers
// that tried it reached it; the peers of a host are the hosts in other network namespaces. Order of preference:
// highest speed (measured, else the driver's; unknown is lowest), RDMA, no tunnel, IPv4 before IPv6, a network that
// more hosts share, lowest route metric, shortest round trip (in steps: 1, 2, 4, 8 ms), name. All hosts of a job get
// the same address family if possible: the one whose slowest choice is faster, then IPv4. Hosts of one network
// namespace get the same choice.
//
// A host without a good candidate gets another one (asymmetric_reach.h), provided that of any two hosts that tried each
// other at least one reached the other at its chosen address; `warnings` then says so. Otherwise fails with
// Errc::kUnreachable: the subject names the faulty hosts; the context lists each of their addresses that was tried,
// the hosts that tried it and the outcomes, and each rejection with its reason.
//
// A single host gets loopback. Several hosts in one network namespace get the best candidate, untried, or loopback if
// there is none.
Result<Choice> choose(const std::vector<HostInterfaces>& hosts, const Candidates& candidates,
                      const std::vector<AttemptResult>& results);

// The same; `faulty` receives the faulty hosts, at least one, if there is no choice.
Result<Choice> choose(const std::vector<HostInterfaces>& hosts, const Candidates& candidates,
                      const std::vector<AttemptResult>& results, std::vector<int>& faulty);

}  // namespace drun::netdetect
