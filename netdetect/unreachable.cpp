#include "netdetect/unreachable.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "base/error_id.h"
#include "base/text.h"
#include "netdetect/duplicates.h"
#include "netdetect/wording.h"

namespace drun::netdetect {
namespace {

constexpr std::size_t kSubjectHosts = 3;
constexpr const char* kNotWanted = "not in --network-interfaces";

class Report {
 public:
  Report(const std::vector<HostInterfaces>& hosts, const Candidates& candidates, const ReachabilityVotes& tally,
         const Pairs& pairs, const std::vector<int>& faulty, const std::vector<int>& lacking)
      : hosts_(hosts),
        candidates_(candidates),
        tally_(tally),
        pairs_(pairs),
        faulty_(faulty),
        lacking_(lacking),
        by_host_(hosts.size()) {
    for (std::size_t c = 0; c < candidates_.tried.size(); ++c) {
      by_host_[static_cast<std::size_t>(candidates_.tried[c].host)].push_back(c);
    }
    told_ = told();
    const auto is_told = [&](const auto& owner) {
      return std::find(told_.begin(), told_.end(), owner.host) != told_.end();
    };
    for (SharedAddress& one : find_shared_addresses(hosts_, tally_.namespaces)) {
      const bool concerns = std::any_of(one.owners.begin(), one.owners.end(), is_told);
      if (one.in_one_network && concerns) duplicates_.push_back(std::move(one));
    }
  }

  Error make() const {
    Error error = headline(told_);
    error.id = error_id::kNoNetwork;
    for (const SharedAddress& one : duplicates_) error = std::move(error).with_context(duplicate_line(one));
    const std::size_t n_shown = told_.size() <= kHostsShown + 1 ? told_.size() : kHostsShown;
    for (std::size_t i = 0; i < n_shown; ++i) {
      for (auto& line : host_lines(told_[i])) error = std::move(error).with_context(std::move(line));
    }
    if (n_shown < told_.size()) {
      error = std::move(error).with_context("and " + plural(told_.size() - n_shown, "more host"));
    }
    return std::move(error).with_hint(hint());
  }

 private:
  const std::string& name(int host) const { return hosts_[static_cast<std::size_t>(host)].host; }

  // The hosts that the error is about, the faulty ones first. A single host that is cut off from several stands for
  // all its pairs.
  std::vector<int> told() const {
    std::vector<int> order = faulty_;
    const auto add = [&order](int host) {
      if (std::find(order.begin(), order.end(), host) == order.end()) order.push_back(host);
    };
    if (!is_star()) {
      for (const auto& [a, b] : pairs_) {
        add(a);
        add(b);
      }
    }
    if (order.empty() || too_many()) {
      for (const int host : lacking_) add(host);
    }
    return order;
  }
  bool too_many() const { return hosts_.size() > 2 && faulty_.size() * 2 > hosts_.size(); }
  bool is_star() const { return faulty_.size() == 1 && pairs_.size() > 1; }

  const std::vector<std::size_t>& candidates_of(int host) const { return by_host_[static_cast<std::size_t>(host)]; }
  bool has_any(int host) const { return !candidates_of(host).empty(); }

  bool all_not_wanted(int host) const {
    bool some = false;
    for (const auto& r : candidates_.rejected) {
      if (r.host == host && r.reason.find(kNotWanted) != std::string::npos) some = true;
    }
    return some && !has_any(host);
  }

  std::string names(const std::vector<int>& hosts, std::size_t limit) const {
    std::vector<std::string> out;
    for (const int host : hosts) out.push_back(name(host));
    return list_some(out, limit);
  }

  Error headline(const std::vector<int>& told) const {
    const bool none_without = std::all_of(faulty_.begin(), faulty_.end(), [&](int h) { return has_any(h); });
    if (!none_without) {
      std::string cause = "no connection with the other hosts comes about";
      if (std::all_of(faulty_.begin(), faulty_.end(), [&](int h) { return all_not_wanted(h); })) {
        cause = "no usable address on an interface in --network-interfaces";
      } else if (std::none_of(faulty_.begin(), faulty_.end(), [&](int h) { return has_any(h); })) {
        cause = "no address that another host could reach";
      }
      return Error(Errc::kUnreachable, names(faulty_, kSubjectHosts), std::move(cause));
    }
    if (pairs_.empty() && lacking_.size() < hosts_.size()) {
      return Error(Errc::kUnreachable, names(lacking_, kSubjectHosts),
                   "no address is reached, and over the interfaces of these no other host is");
    }
    if (too_many() || (pairs_.empty() && hosts_.size() > 2)) {
      return Error(Errc::kUnreachable,
                   "no network on which all " + plural(hosts_.size(), "host") + " can be connected");
    }
    if (pairs_.size() <= 1) {
      return Error(Errc::kUnreachable, names(told, kSubjectHosts), "neither can connect to the other on any network");
    }
    if (pairs_.size() * 2 == told.size() * (told.size() - 1)) {
      return Error(Errc::kUnreachable, names(told, kSubjectHosts), "no two of them can connect to each other");
    }
    std::set<int> others;
    for (const auto& [a, b] : pairs_) {
      for (const int host : {a, b}) {
        if (std::find(faulty_.begin(), faulty_.end(), host) == faulty_.end()) others.insert(host);
      }
    }
    const bool all = others.size() + faulty_.size() == hosts_.size();
    const std::string with = all ? "the other hosts" : names({others.begin(), others.end()}, kHostsShown);
    return Error(Errc::kUnreachable, names(faulty_, kSubjectHosts),
                 "no connection with " + with + " comes about, in either direction");
  }

  // "10.0.0.5 is on host3 (eth0) and host4 (eth1)".
  std::string duplicate_line(const SharedAddress& one) const {
    std::vector<std::string> owners;
    for (const auto& owner : one.owners) owners.push_back(name(owner.host) + " (" + owner.nic->name + ")");
    return one.address.text() + " is on " + list_some(owners, kHostsShown);
  }

  std::vector<std::string> host_lines(int host) const {
    std::vector<std::string> lines;
    if (auto line = from_line(host); !line.empty()) lines.push_back(std::move(line));
    for (const std::size_t c : candidates_of(host)) lines.push_back(candidate_line(c));
    for (auto& line : rejection_lines(host, false)) lines.push_back(std::move(line));
    if (lines.empty()) lines = rejection_lines(host, true);
    if (lines.empty()) lines.push_back(name(host) + ": no interfaces");
    return lines;
  }

  // The hosts that this host did not reach at any address. Empty if the lines of other hosts say so.
  std::string from_line(int host) const {
    if (!is_star() || !has_any(host)) return "";
    std::set<int> missed;
    std::set<int> met;
    for (std::size_t c = 0; c < candidates_.tried.size(); ++c) {
      for (const AttemptResult* a : tally_.candidates[c].attempts) {
        if (a->attempt.from == host) (reached(*a) ? met : missed).insert(candidates_.tried[c].host);
      }
    }
    std::vector<int> list;
    std::set_difference(missed.begin(), missed.end(), met.begin(), met.end(), std::back_inserter(list));
    return list.empty() ? "" : name(host) + ": did not reach " + names(list, kHostsShown);
  }

  std::string candidate_line(std::size_t c) const {
    const Candidate& candidate = candidates_.tried[c];
    const auto& host = hosts_[static_cast<std::size_t>(candidate.host)];
    const auto& nic = host.interfaces[static_cast<std::size_t>(candidate.interface)];
    std::map<std::pair<bool, std::string>, std::set<int>> by_outcome;  // failures first
    for (const AttemptResult* a : tally_.candidates[c].attempts) {
      by_outcome[{reached(*a), outcome_words(a->result) + " from"}].insert(a->attempt.from);
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

  // One line per reason. Without `all`, skips loopback and link-local addresses, which every host has.
  std::vector<std::string> rejection_lines(int host, bool all) const {
    std::vector<std::string> reasons;
    std::map<std::string, std::vector<std::string>> interfaces;
    for (const auto& r : candidates_.rejected) {
      if (r.host != host) continue;
      const bool is_usual = r.reason == "loopback" || r.reason.ends_with("is link-local");
      if (is_usual && !all) continue;
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

  std::string hint() const {
    for (const int host : faulty_) {
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
    if (!duplicates_.empty()) {
      const SharedAddress& one = duplicates_.front();
      return "give all but one of them another address than " + one.address.text() +
             ", and see who answers for it: " + "arping -D -c 2 -I " + one.owners.front().nic->name + " " +
             one.address.text() + "  # on " + name(one.owners.front().host);
    }
    bool dropped = false, rejected = false;
    for (const auto& candidate : tally_.candidates) {
      for (const AttemptResult* a : candidate.attempts) {
        dropped |= a->result.outcome == ProbeOutcome::kTimedOut;
        rejected |= a->result.outcome == ProbeOutcome::kHostUnreachable;
      }
    }
    const std::string allow = " TCP between these hosts: allow it on one network, all ports";
    if (dropped) return "a firewall may drop" + allow;
    if (rejected)
      return "a firewall may reject" + allow + "; or nothing answers at the address, see on each: ip neighbor";
    return "connect the hosts to one network, and see on each: ip -brief address; ip route";
  }

  const std::vector<HostInterfaces>& hosts_;
  const Candidates& candidates_;
  const ReachabilityVotes& tally_;
  const Pairs& pairs_;
  const std::vector<int>& faulty_;
  const std::vector<int>& lacking_;
  std::vector<std::vector<std::size_t>> by_host_;  // indices of its candidates
  std::vector<int> told_;                          // hosts that the error is about
  std::vector<SharedAddress> duplicates_;          // addresses of these hosts that others have, too
};

}  // namespace

Error unreachable_error(const std::vector<HostInterfaces>& hosts, const Candidates& candidates,
                        const ReachabilityVotes& tally, const Pairs& pairs, const std::vector<int>& faulty,
                        const std::vector<int>& lacking) {
  return Report(hosts, candidates, tally, pairs, faulty, lacking).make();
}

}  // namespace drun::netdetect
