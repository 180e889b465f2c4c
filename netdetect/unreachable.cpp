#include "netdetect/unreachable.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "base/text.h"
#include "netdetect/blame.h"
#include "netdetect/wording.h"

namespace drun::netdetect {
namespace {

constexpr std::size_t kSubjectHosts = 3;
constexpr const char* kNotWanted = "not in --network-interfaces";

std::string outcome_words(const ProbeResult& result) {
  const std::string detail = result.detail.empty() ? "" : " (" + result.detail + ")";
  switch (result.outcome) {
    case ProbeOutcome::kReached:
      return "reached from";
    case ProbeOutcome::kRefused:
      return "refused from";
    case ProbeOutcome::kTimedOut:
      return "timed out from";
    case ProbeOutcome::kUnreachable:
      return "unreachable" + detail + " from";
    case ProbeOutcome::kWrongPeer:
      return "answered by something else" + detail + " from";
    case ProbeOutcome::kError:
      break;
  }
  return "failed" + detail + " from";
}

class Report {
 public:
  Report(const std::vector<HostInterfaces>& hosts, const Candidates& candidates, const Tally& tally,
         const std::vector<int>& lacking)
      : hosts_(hosts), candidates_(candidates), tally_(tally), lacking_(lacking), by_host_(hosts.size()) {
    for (std::size_t c = 0; c < candidates_.tried.size(); ++c) {
      by_host_[static_cast<std::size_t>(candidates_.tried[c].host)].push_back(c);
    }
  }

  Error make() const {
    const std::vector<int> guilty = find_guilty(static_cast<int>(hosts_.size()), candidates_, tally_);
    Error error = headline(guilty);
    std::vector<int> order = guilty;
    for (const int host : lacking_) {
      if (std::find(order.begin(), order.end(), host) == order.end()) order.push_back(host);
    }
    const std::size_t n_shown = order.size() <= kHostsShown + 1 ? order.size() : kHostsShown;
    for (std::size_t i = 0; i < n_shown; ++i) {
      for (auto& line : host_lines(order[i])) error = std::move(error).with_context(std::move(line));
    }
    if (n_shown < order.size()) {
      error = std::move(error).with_context("and " + plural(order.size() - n_shown, "more host"));
    }
    return std::move(error).with_hint(hint(guilty));
  }

 private:
  const std::string& name(int host) const { return hosts_[static_cast<std::size_t>(host)].host; }
  bool lacks(int host) const { return std::find(lacking_.begin(), lacking_.end(), host) != lacking_.end(); }

  const std::vector<std::size_t>& candidates_of(int host) const { return by_host_[static_cast<std::size_t>(host)]; }
  bool has_any(int host) const { return !candidates_of(host).empty(); }

  bool all_not_wanted(int host) const {
    bool some = false;
    for (const auto& r : candidates_.rejected) {
      if (r.host == host && r.reason.find(kNotWanted) != std::string::npos) some = true;
    }
    return some && !has_any(host);
  }

  Error headline(const std::vector<int>& guilty) const {
    const bool some_without = std::any_of(guilty.begin(), guilty.end(), [&](int h) { return !has_any(h); });
    if (hosts_.size() == 2 && lacking_.size() == 2 && !some_without) {
      return Error(Errc::kUnreachable, name(0) + " and " + name(1), "neither reaches the other on any network");
    }
    if (hosts_.size() > 2 && !some_without && guilty.size() * 2 > hosts_.size()) {
      return Error(Errc::kUnreachable,
                   "no network on which all " + plural(hosts_.size(), "host") + " reach each other");
    }
    std::vector<std::string> names;
    for (const int host : guilty) names.push_back(name(host));
    const std::string it = guilty.size() == 1 ? "it" : "them";
    std::string cause = "no address of " + it + " is reached by every host that tried it";
    if (std::all_of(guilty.begin(), guilty.end(), [&](int h) { return all_not_wanted(h); })) {
      cause = "no usable address on an interface in --network-interfaces";
    } else if (std::all_of(guilty.begin(), guilty.end(), [&](int h) { return !has_any(h); })) {
      cause = "no address that another host could reach";
    } else if (std::none_of(guilty.begin(), guilty.end(), [&](int h) { return lacks(h); })) {
      cause = guilty.size() == 1 ? "it does not reach the other hosts" : "they do not reach the other hosts";
    }
    return Error(Errc::kUnreachable, list_some(names, kSubjectHosts), std::move(cause));
  }

  std::vector<std::string> host_lines(int host) const {
    std::vector<std::string> lines;
    if (!lacks(host)) lines.push_back(from_line(host));
    for (const std::size_t c : candidates_of(host)) lines.push_back(candidate_line(c));
    for (auto& line : rejection_lines(host)) lines.push_back(std::move(line));
    if (lines.empty()) lines.push_back(name(host) + ": no interfaces");
    return lines;
  }

  // For a host that is itself reached, but does not reach others.
  std::string from_line(int host) const {
    std::set<std::string> missed;
    for (std::size_t c = 0; c < candidates_.tried.size(); ++c) {
      for (const AttemptResult* a : tally_.candidates[c].attempts) {
        if (a->attempt.from == host && !reached(*a)) missed.insert(name(candidates_.tried[c].host));
      }
    }
    return name(host) + ": did not reach " + list_some({missed.begin(), missed.end()}, kHostsShown);
  }

  std::string candidate_line(std::size_t c) const {
    const Candidate& candidate = candidates_.tried[c];
    const auto& host = hosts_[static_cast<std::size_t>(candidate.host)];
    const auto& nic = host.interfaces[static_cast<std::size_t>(candidate.interface)];
    std::map<std::pair<bool, std::string>, std::set<int>> by_outcome;  // failures first
    for (const AttemptResult* a : tally_.candidates[c].attempts) {
      by_outcome[{reached(*a), outcome_words(a->result)}].insert(a->attempt.from);
    }
    std::vector<std::string> parts;
    for (const auto& [outcome, from] : by_outcome) {
      std::vector<std::string> names;
      for (const int h : from) names.push_back(name(h));
      parts.push_back(outcome.second + " " + list_some(names, kHostsShown));
    }
    if (parts.empty()) parts.push_back("not tried");
    return host.host + ": " + nic.name + ": " + candidate.address.text() + " " + join(parts, "; ");
  }

  // A line per reason.
  std::vector<std::string> rejection_lines(int host) const {
    std::vector<std::string> reasons;
    std::map<std::string, std::vector<std::string>> interfaces;
    for (const auto& r : candidates_.rejected) {
      if (r.host != host) continue;
      if (interfaces.count(r.reason) == 0) reasons.push_back(r.reason);
      interfaces[r.reason].push_back(r.interface);
    }
    std::vector<std::string> lines;
    for (const auto& reason : reasons) {
      lines.push_back(name(host) + ": " + list_some(interfaces[reason], kHostsShown) + ": " + reason);
    }
    return lines;
  }

  bool is_elsewhere(int host, const Address& address) const {
    for (std::size_t other = 0; other < hosts_.size(); ++other) {
      if (tally_.namespaces[other] == tally_.namespaces[static_cast<std::size_t>(host)]) continue;
      for (const auto& nic : hosts_[other].interfaces) {
        if (std::find(nic.addresses.begin(), nic.addresses.end(), address) != nic.addresses.end()) return true;
      }
    }
    return false;
  }

  std::string hint(const std::vector<int>& guilty) const {
    for (const int host : guilty) {
      if (!all_not_wanted(host)) continue;
      std::vector<std::string> names;
      for (const auto& nic : hosts_[static_cast<std::size_t>(host)].interfaces) {
        const bool usable = std::any_of(nic.addresses.begin(), nic.addresses.end(), [&](const Address& address) {
          return !address.link_local && !is_elsewhere(host, address);
        });
        if (!nic.loopback && nic.up && nic.running && usable) names.push_back(nic.name);
      }
      if (names.empty()) return "leave out --network-interfaces";
      return "leave out --network-interfaces, or add one of " + name(host) + "'s: " + join(names, ",");
    }
    bool dropped = false;
    for (const auto& candidate : tally_.candidates) {
      for (const AttemptResult* a : candidate.attempts) dropped |= a->result.outcome == ProbeOutcome::kTimedOut;
    }
    if (dropped) return "a firewall may drop TCP between these hosts: allow it on one network, all ports";
    return "connect the hosts to one network, and see on each: ip -brief address; ip route";
  }

  const std::vector<HostInterfaces>& hosts_;
  const Candidates& candidates_;
  const Tally& tally_;
  const std::vector<int>& lacking_;
  std::vector<std::vector<std::size_t>> by_host_;  // indices of its candidates
};

}  // namespace

Error unreachable_error(const std::vector<HostInterfaces>& hosts, const Candidates& candidates, const Tally& tally,
                        const std::vector<int>& lacking) {
  return Report(hosts, candidates, tally, lacking).make();
}

}  // namespace drun::netdetect
