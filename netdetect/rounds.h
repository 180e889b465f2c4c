// Pairs of hosts put into rounds, in each of which a host appears at most once, so that measurements of pairs do not
// disturb each other. Pure.
#pragma once

#include <utility>
#include <vector>

namespace drun::netdetect {

using HostPair = std::pair<int, int>;  // first < second
using Round = std::vector<HostPair>;

inline constexpr int kAllPairsHosts = 32;  // up to so many hosts a round-robin tournament is played

// All pairs of n hosts: n - 1 rounds, n for an odd number (the circle method).
std::vector<Round> tournament(int n_hosts);

// Each of `pairs` once, in as few rounds as is simple: the tournament's to kAllPairsHosts hosts, beyond that greedily
// (at most twice the largest number of pairs of one host, less one). No round is empty. Pairs that are no pairs of two
// different hosts below n_hosts, or that come again, are left out; {b, a} is {a, b}.
std::vector<Round> rounds_of(int n_hosts, const std::vector<HostPair>& pairs);

// Those of which at least one side can connect to the other: reach as netdetect::Choice has it.
std::vector<HostPair> reachable_pairs(const std::vector<std::vector<int>>& reach);

}  // namespace drun::netdetect
