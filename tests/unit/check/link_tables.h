// Clusters as tables of links, for tests without I/O.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "check/link_findings.h"
#include "check/link_repeat.h"

namespace drun::check::testing {

// A network in which each host has send and receive rates, a loss and a distance; single pairs may differ. It is
// measured as drun does it: all pairs, then the pairs to repeat.
struct FakeNetwork {
  struct Host {
    double sends = 941e6, receives = 941e6;
    double loss = 0;  // in both directions
    double extra_us = 0;
    int mtu = 1500, speed_mbps = 0;
  };
  std::vector<Host> hosts;
  std::string kind = "physical", machine;
  // Changes the measurement from a to b.
  std::function<void(int from, int to, netdetect::Rate&)> special = [](int, int, netdetect::Rate&) {};
  // Result of paced streams from a to b. If unset, only the second pass has paced streams, which follow `loss`.
  std::function<netdetect::Rate(int from, int to)> paced;
  // True for pairs whose bandwidth the first pass has no time to measure.
  std::function<bool(int a, int b)> left_out = [](int, int) { return false; };
  std::function<double(int a, int b)> pair_us = [](int, int) { return 0.0; };
  double scatter = 1;  // rates are divided by up to this factor, round trips multiplied
  double alone = 1;    // in the second pass rates are this much higher
  double gain_of_streams = 1.02;
  bool has_second_pass = true;
  unsigned seed = 1;

  explicit FakeNetwork(int n) : hosts(static_cast<std::size_t>(n)) {}
  Host& operator[](int i) { return hosts[static_cast<std::size_t>(i)]; }

  std::vector<LinkHost> link_hosts() const {
    std::vector<LinkHost> out;
    for (std::size_t i = 0; i < hosts.size(); ++i) {
      out.push_back(
          {"h" + std::to_string(i), "eth" + std::to_string(i), kind, hosts[i].mtu, hosts[i].speed_mbps, machine});
    }
    return out;
  }

  netdetect::LinkReport measure() const {
    std::mt19937 random(seed);
    netdetect::LinkReport out;
    const int n = static_cast<int>(hosts.size());
    for (int a = 0; a < n; ++a) {
      for (int b = a + 1; b < n; ++b) {
        out.links.push_back(link(a, b, random, 1));
        if (paced) hold(out.links.back());
        if (!left_out(a, b)) continue;
        for (netdetect::Direction* d : {&out.links.back().forward, &out.links.back().backward}) d->rates.clear();
      }
    }
    if (!has_second_pass) return out;
    for (const auto& [a, b] : pairs_to_repeat(link_hosts(), out.links)) {
      out.second_pass.push_back(link(a, b, random, alone));
      out.second_pass.back().again = true;
      hold(out.second_pass.back());
    }
    return out;
  }

  std::vector<Finding> findings() const { return link_findings(link_hosts(), measure()); }

 private:
  // Adds a paced measurement to each direction that loses: so slow that no queue is full.
  void hold(netdetect::Link& link) const {
    if (paced) {
      link.forward.paced = paced(link.a, link.b);
      link.backward.paced = paced(link.b, link.a);
      return;
    }
    for (netdetect::Direction* d : {&link.forward, &link.backward}) {
      netdetect::Rate rate = d->rates[0];
      if (200 * rate.n_retransmits <= rate.n_segments) continue;
      const double share = static_cast<double>(rate.n_retransmits) / static_cast<double>(rate.n_segments);
      rate.bits_per_second = std::clamp(rate.bits_per_second / 4, 1e6, 100e6);
      rate.n_segments = static_cast<std::uint64_t>(rate.bits_per_second * 0.6 / 8 / 1448);
      rate.n_retransmits = static_cast<std::uint64_t>(std::lround(share * static_cast<double>(rate.n_segments)));
      d->paced = rate;
    }
  }

  netdetect::Link link(int a, int b, std::mt19937& random, double faster) const {
    const auto chance = [&] { return std::pow(scatter, std::uniform_real_distribution<>(0, 1)(random)); };
    netdetect::Link out;
    out.a = a;
    out.b = b;
    const Host &x = hosts[static_cast<std::size_t>(a)], &y = hosts[static_cast<std::size_t>(b)];
    out.n_round_trips = 100;
    out.rtt_min_us = 60 + x.extra_us + y.extra_us + pair_us(a, b);
    out.rtt_median_us = out.rtt_min_us * 1.1 * chance();
    out.rtt_p99_us = 3 * out.rtt_median_us;
    const auto direction = [&](int from, int to) {
      netdetect::Direction d;
      const Host &sender = hosts[static_cast<std::size_t>(from)], &receiver = hosts[static_cast<std::size_t>(to)];
      for (const int n_streams : {1, 4}) {
        netdetect::Rate rate;
        rate.n_streams = n_streams;
        rate.bits_per_second = std::min(sender.sends, receiver.receives) * faster / chance();
        if (n_streams > 1) rate.bits_per_second *= gain_of_streams;
        const double lost = sender.loss + receiver.loss;
        if (lost > 0 && n_streams == 1) rate.bits_per_second /= 5;
        rate.seconds = 0.15;
        rate.n_segments = static_cast<std::uint64_t>(rate.bits_per_second * rate.seconds / 8 / 1448);
        rate.n_retransmits = static_cast<std::uint64_t>(std::lround(lost * static_cast<double>(rate.n_segments)));
        special(from, to, rate);
        d.rates.push_back(rate);
      }
      d.path_mtu = std::min(sender.mtu, receiver.mtu);
      return d;
    };
    out.forward = direction(a, b);
    out.backward = direction(b, a);
    return out;
  }
};

// The findings as "link-slow h2 eth2", in their order.
inline std::vector<std::string> heads(const std::vector<Finding>& findings) {
  std::vector<std::string> out;
  for (const Finding& f : findings) {
    EXPECT_NE(f.command, "") << f.code;  // each has one that fixes or investigates it
    out.push_back(f.code + " " + f.subject);
  }
  return out;
}

}  // namespace drun::check::testing
