// The attempts of hosts to connect to each other's addresses that failed: which they were, why, and in words. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "netdetect/choose_subset.h"
#include "netdetect/reachability_votes.h"

namespace drun::check {

// The reason why an attempt failed.
enum class Obstacle : std::uint8_t { kFiltered, kRefused, kRejected, kNoRoute, kWrongSubnet, kAnotherAnswers, kOther };

struct ObstacleText {
  const char* code;  // of the finding
  const char* words;
};
ObstacleText text_of(Obstacle obstacle);

// Borrows what it is made of. Hosts are indices.
class FailedAttempts {
 public:
  using List = std::vector<const netdetect::AttemptResult*>;

  FailedAttempts(const std::vector<netdetect::HostInterfaces>& hosts, const netdetect::Candidates& candidates,
                 const netdetect::ReachabilityVotes& tally, const netdetect::PartialChoice& most)
      : hosts_(hosts), candidates_(candidates), tally_(tally), most_(most) {}

  // All attempts between two hosts that are not connected, in both directions.
  List between(int a, int b) const;
  // At the chosen address of this host, or at any of its addresses if it has none.
  List at(int host) const;
  // At chosen addresses; -1: any host.
  List at_chosen(int from, int to) const;

  Obstacle obstacle(const netdetect::AttemptResult& attempt) const;
  // True if nothing of the target's came back, and the host that tried has no address in the target's network.
  bool is_elsewhere(const netdetect::AttemptResult& attempt) const;
  // "host0 to host1, eth0 10.0.0.2: timed out".
  std::string line(const netdetect::AttemptResult& attempt) const;
  // Skips attempts at addresses of another subnet, which mean nothing, if one of the same subnet was tried.
  std::vector<std::string> lines(List attempts) const;

  // The host whose address an attempt tried.
  int target(const netdetect::AttemptResult& attempt) const { return candidate(attempt).host; }

 private:
  const std::string& name(int host) const { return hosts_[static_cast<std::size_t>(host)].host; }
  const netdetect::Address& chosen(int host) const {
    return most_.choice.hosts[static_cast<std::size_t>(host)].address;
  }
  const netdetect::Candidate& candidate(const netdetect::AttemptResult& attempt) const {
    return candidates_.tried[static_cast<std::size_t>(attempt.attempt.candidate)];
  }
  bool in_network_of(int host, const netdetect::Address& address) const;

  const std::vector<netdetect::HostInterfaces>& hosts_;
  const netdetect::Candidates& candidates_;
  const netdetect::ReachabilityVotes& tally_;
  const netdetect::PartialChoice& most_;
};

}  // namespace drun::check
