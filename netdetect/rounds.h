// Arranges pairs of hosts in rounds, in each of which a host appears at most once, so that measurements of pairs do
// not disturb each other. Pure.
#pragma once

#include <utility>
#include <vector>

namespace drun::netdetect {

using HostPair = std::pair<int, int>;  // first < second
using Round = std::vector<HostPair>;

inline constexpr int kAllPairsHosts = 32;  // up to this many hosts, the rounds are a round-robin tournament

// All pairs of n hosts: n - 1 rounds, n for an odd number (the circle method).
std::vector<Round> tournament(int n_hosts);

// Arranges each of `pairs` once: in the tournament's rounds for up to kAllPairsHosts hosts, beyond that greedily (in
// at most 2 k - 1 rounds if no host is in more than k pairs). No round is empty. {b, a} is {a, b}. Drops duplicates
// and pairs that are not two different hosts below n_hosts.
std::vector<Round> rounds_of(int n_hosts, const std::vector<HostPair>& pairs);

// Leaves out pairs of hosts that are in more than `most`: each of these needs a round of its own, and all hosts would
// have less time for each. (All hosts try the head of a job.) The pairs of hosts that follow one another remain, and
// one pair for each host.
std::vector<HostPair> limit_pairs(int n_hosts, const std::vector<HostPair>& pairs, int most);

// Pairs of which at least one host can connect to the other. `reach` is as in netdetect::Choice.
std::vector<HostPair> reachable_pairs(const std::vector<std::vector<int>>& reach);

}  // namespace drun::netdetect
