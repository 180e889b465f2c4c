// The interfaces of all hosts together with the results of the network probe: what interface_findings.h is based on.
// Pure.
#pragma once

#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "netdetect/choose_subset.h"
#include "netdetect/duplicates.h"
#include "netdetect/interface.h"
#include "netdetect/reachability_votes.h"

namespace drun::check {

bool is_tunnel(const netdetect::Interface& nic);
bool is_hardware(const netdetect::Interface& nic);

// Borrows what it is made of. Hosts, interfaces of a host and candidates are indices.
class InterfaceView {
 public:
  InterfaceView(const std::vector<netdetect::HostInterfaces>& hosts, const netdetect::Candidates& candidates,
                const netdetect::ReachabilityVotes& tally, const netdetect::PartialChoice& most,
                const std::vector<netdetect::SharedAddress>& shared, const std::vector<int>& gone);

  int n_hosts() const { return static_cast<int>(hosts_.size()); }
  const std::string& name(int host) const { return hosts_[static_cast<std::size_t>(host)].host; }
  std::string names(const std::vector<int>& hosts) const;
  bool gone(int host) const { return gone_.contains(host); }
  const std::vector<netdetect::Interface>& nics(int host) const {
    return hosts_[static_cast<std::size_t>(host)].interfaces;
  }
  const std::vector<netdetect::SharedAddress>& shared_addresses() const { return shared_; }
  const std::vector<netdetect::Rejection>& rejected() const { return candidates_.rejected; }

  // The choice of the probe. null: the host has none.
  const netdetect::HostChoice& choice(int host) const { return most_.choice.hosts[static_cast<std::size_t>(host)]; }
  bool has_choice(int host) const { return !choice(host).address.bytes.empty(); }
  const netdetect::Interface* chosen_nic(int host) const;
  // The speed of an interface of nics(host) that the choice used, in Mb/s: measured if known, else the driver's.
  int speed(int host, const netdetect::Interface& nic) const;

  // The addresses that other hosts tried, and the attempts at each.
  const std::vector<netdetect::Candidate>& candidates() const { return candidates_.tried; }
  const std::vector<std::size_t>& candidates_of(int host, int nic) const;
  const std::vector<const netdetect::AttemptResult*>& attempts(std::size_t candidate) const {
    return tally_.candidates[candidate].attempts;
  }
  // True if some host reached an address of this interface; if one of them is good enough for the choice.
  bool any_reached(int host, int nic) const;
  bool any_good(int host, int nic) const;
  // True if some host reached some address of this host.
  bool is_reached_somewhere(int host) const;

 private:
  const std::vector<netdetect::HostInterfaces>& hosts_;
  const netdetect::Candidates& candidates_;
  const netdetect::ReachabilityVotes& tally_;
  const netdetect::PartialChoice& most_;
  const std::vector<netdetect::SharedAddress>& shared_;
  std::set<int> gone_;
  std::map<std::pair<int, int>, std::vector<std::size_t>> of_;  // host, interface: its candidates
};

}  // namespace drun::check
