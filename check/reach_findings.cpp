#include "check/reach_findings.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "check/failed_attempts.h"
#include "check/interface_findings.h"
#include "netdetect/duplicates.h"
#include "netdetect/faulty_hosts.h"
#include "netdetect/network.h"
#include "netdetect/reachability_matrix.h"
#include "netdetect/wording.h"

namespace drun::check {
namespace {

constexpr std::size_t kDetails = 12;

class Reach {
 public:
  Reach(const std::vector<netdetect::HostInterfaces>& hosts, const netdetect::Candidates& candidates,
        const netdetect::ReachabilityVotes& tally, const netdetect::PartialChoice& most,
        const std::vector<netdetect::SharedAddress>& shared, const std::vector<int>& gone, Purpose purpose)
      : hosts_(hosts),
        candidates_(candidates),
        tally_(tally),
        most_(most),
        gone_(gone.begin(), gone.end()),
        purpose_(purpose),
        attempts_(hosts, candidates, tally, most),
        directions_(hosts, candidates, tally),
        pairs_(netdetect::find_unconnected(tally, directions_)) {
    for (const netdetect::SharedAddress& one : shared) {
      for (const auto& owner : one.owners) {
        if (one.in_one_network && chosen(owner.host).bytes.empty()) without_address_.insert(owner.host);
      }
    }
    std::erase_if(pairs_, [&](const auto& pair) {
      return without_address_.contains(pair.first) || without_address_.contains(pair.second);
    });
  }

  std::vector<Finding> run() {
    if (tally_.n_namespaces > 1) {
      find_hosts_without_address();
      find_not_connected();
      find_hidden();
      find_mute();
      find_directions();
    }
    return std::move(out_);
  }

 private:
  const std::string& name(int host) const { return hosts_[static_cast<std::size_t>(host)].host; }
  int namespace_of(int host) const { return tally_.namespaces[static_cast<std::size_t>(host)]; }
  std::string names(const std::vector<int>& list) const {
    std::vector<std::string> out;
    for (const int host : list) out.push_back(name(host));
    return list_some(out, netdetect::kHostsShown);
  }
  bool has_candidate(int host) const {
    return std::any_of(candidates_.tried.begin(), candidates_.tried.end(),
                       [host](const netdetect::Candidate& c) { return c.host == host; });
  }
  const netdetect::Address& chosen(int host) const {
    return most_.choice.hosts[static_cast<std::size_t>(host)].address;
  }

  void add(Severity severity, const char* code, std::vector<int> hosts, std::string text,
           std::vector<std::string> details, std::string command) {
    Finding finding;
    finding.severity = severity;
    finding.code = code;
    finding.subject = names(hosts);
    finding.hosts = std::move(hosts);
    finding.text = std::move(text);
    if (details.size() > kDetails + 1) {
      const std::size_t n_more = details.size() - kDetails;
      details.resize(kDetails);
      details.push_back("and " + std::to_string(n_more) + " more");
    }
    finding.details = std::move(details);
    finding.command = std::move(command);
    out_.push_back(std::move(finding));
  }

  Severity one_way_severity() const {
    return needs_both_directions(purpose_) ? Severity::kFailure : Severity::kWarning;
  }

  void find_hosts_without_address() {
    for (std::size_t h = 0; h < hosts_.size(); ++h) {
      const int host = static_cast<int>(h);
      if (gone_.count(host) > 0 || has_candidate(host) || without_address_.contains(host)) continue;
      bool by_option = false;
      std::vector<std::string> details;
      for (const auto& r : candidates_.rejected) {
        if (r.host != host) continue;
        by_option = by_option || r.reason.find("--network-interfaces") != std::string::npos;
        details.push_back(r.interface + ": " + r.reason);
      }
      if (details.empty()) details.push_back("no interfaces");
      if (by_option) {
        add(Severity::kFailure, "interfaces-option", {host}, "--network-interfaces leaves it no interface",
            std::move(details), "ip -brief address  # on " + name(host));
      } else {
        add(Severity::kFailure, "no-address", {host}, "has no address that another host could reach",
            std::move(details), "ip -brief address  # on " + name(host));
      }
    }
  }

  void find_not_connected() {
    netdetect::Pairs left = pairs_;
    // Hosts of which no two are connected become one finding; otherwise takes the host that is in most pairs first.
    while (!left.empty()) {
      std::set<int> in;
      std::map<int, int> count;
      for (const auto& [a, b] : left) {
        for (const int host : {a, b}) {
          in.insert(host);
          ++count[host];
        }
      }
      if (left.size() * 2 == in.size() * (in.size() - 1)) {
        report_unconnected({in.begin(), in.end()}, left);
        return;
      }
      const int worst = std::max_element(count.begin(), count.end(), [](const auto& a, const auto& b) {
                          return a.second < b.second;
                        })->first;
      netdetect::Pairs of_worst;
      netdetect::Pairs rest;
      for (const auto& pair : left) (pair.first == worst || pair.second == worst ? of_worst : rest).push_back(pair);
      report_unconnected({worst}, of_worst);
      left = std::move(rest);
    }
  }

  void report_unconnected(std::vector<int> hosts, const netdetect::Pairs& pairs) {
    std::vector<std::string> details;
    std::set<int> others;
    bool other_subnets = true, no_routes = true;
    for (const auto& [a, b] : pairs) {
      const auto attempts = attempts_.between(a, b);
      for (const netdetect::AttemptResult* r : attempts) {
        other_subnets = other_subnets && attempts_.is_elsewhere(*r);
        no_routes = no_routes && r->result.outcome == netdetect::ProbeOutcome::kUnreachable;
      }
      for (auto& text : attempts_.lines(attempts)) details.push_back(std::move(text));
      others.insert(a);
      others.insert(b);
    }
    if (other_subnets) {
      for (const int host : hosts) details.push_back(name(host) + " is in " + networks_of(host));
    }
    for (const int host : hosts) others.erase(host);
    std::string text = "no two of them can connect to each other";
    if (hosts.size() == 1) {
      text = "no connection with " + names({others.begin(), others.end()}) + " comes about, in either direction";
    } else if (hosts.size() == 2) {
      text = "neither can connect to the other";
    }
    if (other_subnets) {
      text += ": they are in different subnets, and ";
      text += no_routes ? "no route joins these" : "no route joins these, or a firewall is between them";
    }
    const std::string on = "  # on " + names(hosts);
    add(Severity::kFailure, "not-connected", std::move(hosts), std::move(text), std::move(details),
        (other_subnets ? "ip route; nft list ruleset" : "nft list ruleset") + on);
  }

  std::string networks_of(int host) const {
    std::vector<std::string> out;
    for (const auto& c : candidates_.tried) {
      if (c.host == host) out.push_back(netdetect::network_text(c.address));
    }
    return list_some(out, netdetect::kHostsShown);
  }

  bool is_unconnected(int a, int b) const {
    const std::pair<int, int> pair(std::min(a, b), std::max(a, b));
    return std::find(pairs_.begin(), pairs_.end(), pair) != pairs_.end();
  }

  // Peers that tried a host (or that it tried), by outcome.
  struct Outcomes {
    std::vector<int> failed;
    int n_reached = 0;
  };
  Outcomes outcomes(int host, bool incoming) const {
    Outcomes out;
    for (std::size_t h = 0; h < hosts_.size(); ++h) {
      const int other = static_cast<int>(h);
      const netdetect::Reach outcome = incoming ? directions_.between(namespace_of(other), namespace_of(host))
                                                : directions_.between(namespace_of(host), namespace_of(other));
      if (outcome == netdetect::Reach::kReached) ++out.n_reached;
      if (outcome == netdetect::Reach::kFailed) out.failed.push_back(other);
    }
    return out;
  }

  void find_hidden() {
    for (std::size_t h = 0; h < hosts_.size(); ++h) {
      const int host = static_cast<int>(h);
      const Outcomes in = outcomes(host, true);
      if (in.failed.empty() || in.n_reached > 0 || outcomes(host, false).n_reached == 0) continue;
      if (without_address_.contains(host)) continue;
      std::vector<std::string> details = attempts_.lines(attempts_.at(host));
      for (const int from : in.failed) told_.emplace(from, host);
      std::string text = "accepts no connections from the other hosts, only makes them: " + one_way_words(purpose_);
      if (host == 0) text += "; put another host first, as MASTER_ADDR would be on this one";
      add(one_way_severity(), "host-hidden", {host}, std::move(text), std::move(details),
          "nft list ruleset  # on " + name(host));
    }
  }

  void find_mute() {
    for (std::size_t h = 0; h < hosts_.size(); ++h) {
      const int host = static_cast<int>(h);
      const Outcomes out = outcomes(host, false);
      if (out.failed.empty() || out.n_reached > 0 || outcomes(host, true).n_reached == 0) continue;
      if (without_address_.contains(host)) continue;
      if (std::all_of(out.failed.begin(), out.failed.end(), [&](int to) { return told_.count({host, to}) > 0; })) {
        continue;
      }
      std::vector<std::string> details;
      for (const netdetect::AttemptResult* a : attempts_.at_chosen(host, -1)) details.push_back(attempts_.line(*a));
      for (const int to : out.failed) told_.emplace(host, to);
      add(one_way_severity(), "host-reaches-nobody", {host},
          "can't connect to the other hosts, only they to it: " + one_way_words(purpose_), std::move(details),
          "nft list ruleset; ip route  # on " + name(host));
    }
  }

  // The remaining directions: one finding per target and obstacle.
  void find_directions() {
    std::map<std::pair<int, Obstacle>, std::vector<const netdetect::AttemptResult*>> groups;
    for (const netdetect::AttemptResult* a : attempts_.at_chosen(-1, -1)) {
      const int to = attempts_.target(*a);
      if (told_.count({a->attempt.from, to}) > 0 || is_unconnected(a->attempt.from, to)) continue;
      if (without_address_.contains(a->attempt.from) || without_address_.contains(to)) continue;
      groups[{to, attempts_.obstacle(*a)}].push_back(a);
    }
    for (const auto& [key, list] : groups) {
      const auto& [to, what] = key;
      std::vector<std::string> details;
      std::vector<int> from;
      for (const netdetect::AttemptResult* a : list) {
        details.push_back(attempts_.line(*a));
        from.push_back(a->attempt.from);
      }
      const ObstacleText text = text_of(what);
      const std::string address = chosen(to).text();
      std::vector<int> involved = from;
      involved.push_back(to);
      const bool at_target = what == Obstacle::kFiltered || what == Obstacle::kRefused || what == Obstacle::kRejected;
      std::string command = "ip route get " + address + "  # on " + name(from.front());
      if (at_target) command = "nft list ruleset  # on " + name(to) + " and " + names(from);
      add(one_way_severity(), text.code, std::move(involved),
          "only " + name(to) + " can connect to " + names(from) + ", not the other way round (" + text.words +
              "): " + one_way_words(purpose_),
          std::move(details), std::move(command));
      out_.back().subject = names(from) + " to " + name(to);
    }
  }

  const std::vector<netdetect::HostInterfaces>& hosts_;
  const netdetect::Candidates& candidates_;
  const netdetect::ReachabilityVotes& tally_;
  const netdetect::PartialChoice& most_;
  std::set<int> gone_;
  Purpose purpose_;
  FailedAttempts attempts_;
  netdetect::ReachabilityMatrix directions_;
  netdetect::Pairs pairs_;
  // Hosts whose address another host has, too, which explains why connections with them fail (address-duplicate).
  std::set<int> without_address_;
  std::set<std::pair<int, int>> told_;  // directions that a finding has already named
  std::vector<Finding> out_;
};

}  // namespace

std::vector<Finding> reach_findings(const std::vector<netdetect::HostInterfaces>& hosts,
                                    const netdetect::Candidates& candidates,
                                    const std::vector<netdetect::AttemptResult>& results,
                                    const netdetect::PartialChoice& most, const std::vector<int>& gone,
                                    Purpose purpose) {
  if (most.choice.hosts.size() != hosts.size()) return {};
  const netdetect::ReachabilityVotes tally = netdetect::tally_results(hosts, candidates, results);
  const std::vector<netdetect::SharedAddress> shared = netdetect::find_shared_addresses(hosts, tally.namespaces, gone);
  std::vector<Finding> out = Reach(hosts, candidates, tally, most, shared, gone, purpose).run();
  const InterfaceView interfaces(hosts, candidates, tally, most, shared, gone);
  for (auto& finding : interface_findings(interfaces)) out.push_back(std::move(finding));
  sort_findings(out);
  return out;
}

}  // namespace drun::check
