#include "check/baseline.h"

#include <algorithm>
#include <cmath>
#include <ctime>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "base/json_text.h"
#include "base/text.h"
#include "base/units.h"
#include "check/link_attribution.h"
#include "netdetect/link_stats.h"
#include "netdetect/wording.h"

namespace drun::check {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kKind = "drun check baseline";
constexpr int kVersion = 1;

// Two measurements of a good link on a busy machine may differ by a factor of two, but all links of a host change in
// the same direction only if something has changed. A lone pair is one of many, so chance gets more tries: it must
// differ by more.
constexpr double kSlower = 0.5, kLonePairSlower = 0.3, kAllSlower = 0.6;
constexpr double kFarther = 3, kFartherUs = 300;

netdetect::Edges best_edges(const netdetect::LinkReport& report) {
  std::vector<netdetect::Link> links = report.links;
  links.insert(links.end(), report.second_pass.begin(), report.second_pass.end());
  return netdetect::edges_of(links);
}

std::string utc(std::chrono::system_clock::time_point now) {
  const std::time_t seconds = std::chrono::system_clock::to_time_t(now);
  tm parts{};
  ::gmtime_r(&seconds, &parts);
  char text[32];
  return {text, std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts)};
}

tl::unexpected<Error> bad(std::string why) {
  return fail(Error(Errc::kUsage, std::move(why)).with_hint("write a new one: drun check --save-baseline FILE ..."));
}

// A direction in the baseline and now.
struct Change {
  BaselineLink then;
  netdetect::Edge now;
};

using Changes = std::map<netdetect::HostPair, Change>;

Changes changes_of(const std::vector<std::string>& names, const netdetect::Edges& edges, const Baseline& baseline) {
  Changes out;
  for (const auto& [pair, edge] : edges) {
    const auto then = baseline.links.find(
        {names[static_cast<std::size_t>(pair.first)], names[static_cast<std::size_t>(pair.second)]});
    if (then != baseline.links.end()) out[pair] = {then->second, edge};
  }
  return out;
}

bool comparable_rate(const Change& c) { return c.then.bits_per_second > 0 && c.now.bits_per_second > 0; }
bool comparable_rtt(const Change& c) { return c.then.rtt_us > 0 && c.now.rtt_us > 0; }
double share(const Change& c) { return c.now.bits_per_second / c.then.bits_per_second; }
bool slower(const Change& c) { return share(c) < kSlower; }
bool farther(const Change& c) {
  return c.now.rtt_us > kFarther * c.then.rtt_us && c.now.rtt_us > c.then.rtt_us + kFartherUs;
}

Attribution attribution(const Changes& changes, bool (*comparable)(const Change&), bool (*worse)(const Change&)) {
  std::set<netdetect::HostPair> measured, bad_ones;
  for (const auto& [pair, change] : changes) {
    if (!comparable(change)) continue;
    measured.insert(pair);
    if (worse(change)) bad_ones.insert(pair);
  }
  return attribute_links(measured, bad_ones);
}

struct Kind {
  const char* code;
  bool (*comparable)(const Change&);
  bool (*worse)(const Change&);
  double (*then)(const Change&);
  double (*now)(const Change&);
  std::function<std::string(double now, double then)> words;
};

class Comparison {
 public:
  Comparison(const std::vector<std::string>& names, const Changes& changes, const Kind& kind)
      : names_(names), changes_(changes), kind_(kind) {}

  std::vector<Finding> findings(bool all) {
    if (all) {
      add({}, "all hosts", [](const netdetect::HostPair&) { return true; });
      return std::move(out_);
    }
    const Attribution found = attribution(changes_, kind_.comparable, kind_.worse);
    for (const int host : found.hosts()) {
      add({host}, name(host), [&](const netdetect::HostPair& pair) {
        return (pair.first == host && found.senders.contains(host)) ||
               (pair.second == host && found.receivers.contains(host));
      });
    }
    for (const netdetect::HostPair& pair : found.pairs) {
      const bool both = found.pairs.contains({pair.second, pair.first});
      if (both && pair.first > pair.second) continue;
      const Change& change = changes_.at(pair);
      const bool of_two = changes_.size() == 2;
      if (kind_.comparable == comparable_rate && !of_two && share(change) >= kLonePairSlower) continue;
      add({pair.first, pair.second}, name(pair.first) + " to " + name(pair.second), [&](const netdetect::HostPair& p) {
        return p == pair || (both && p == netdetect::HostPair{pair.second, pair.first});
      });
    }
    return std::move(out_);
  }

 private:
  const std::string& name(int host) const { return names_[static_cast<std::size_t>(host)]; }

  void add(std::vector<int> hosts, std::string subject, const std::function<bool(const netdetect::HostPair&)>& of_it) {
    Finding finding;
    finding.severity = Severity::kWarning;
    finding.code = kind_.code;
    if (hosts.empty()) finding.command = "drun check --save-baseline FILE ...  # if it is meant to be so";
    if (hosts.size() == 1) finding.command = "ip -s link  # on " + name(hosts[0]);
    if (hosts.size() == 2) finding.command = "tracepath " + name(hosts[1]) + "  # on " + name(hosts[0]);
    finding.hosts = std::move(hosts);
    finding.subject = std::move(subject);
    std::vector<double> now, then;
    for (const auto& [pair, change] : changes_) {
      if (!of_it(pair) || !kind_.comparable(change)) continue;
      now.push_back(kind_.now(change));
      then.push_back(kind_.then(change));
      if (finding.details.size() < netdetect::kHostsShown) {
        finding.details.push_back(name(pair.first) + " to " + name(pair.second) + ": " +
                                  kind_.words(kind_.now(change), kind_.then(change)));
      }
    }
    finding.text = kind_.words(netdetect::median(std::move(now)), netdetect::median(std::move(then)));
    out_.push_back(std::move(finding));
  }

  const std::vector<std::string>& names_;
  const Changes& changes_;
  const Kind& kind_;
  std::vector<Finding> out_;
};

void add_other_hosts(const std::vector<std::string>& names, const Baseline& baseline, std::vector<Finding>& out) {
  std::set<std::string> then;
  for (const auto& [pair, link] : baseline.links) then.insert({pair.first, pair.second});
  const std::set<std::string> now(names.begin(), names.end());
  Finding finding;
  finding.code = "baseline-hosts";
  finding.command = "drun check --save-baseline FILE ...";
  std::vector<std::string> added, gone;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (then.contains(names[i])) continue;
    finding.hosts.push_back(static_cast<int>(i));
    added.push_back(names[i]);
  }
  std::set_difference(then.begin(), then.end(), now.begin(), now.end(), std::back_inserter(gone));
  if (!added.empty()) {
    finding.subject = list_some(added, netdetect::kHostsShown);
    finding.text = "not in the baseline of " + baseline.saved + ", so not compared with it";
    out.push_back(finding);
  }
  if (!gone.empty()) {
    finding.hosts.clear();
    finding.subject = list_some(gone, netdetect::kHostsShown);
    finding.text = "in the baseline of " + baseline.saved + ", but not checked now";
    out.push_back(finding);
  }
}

// A rate or a time; 0 if it is missing or null, nullopt if it is not a non-negative number.
std::optional<double> number(const Json& link, const char* key) {
  const auto at = link.find(key);
  if (at == link.end() || at->is_null()) return 0;
  if (!at->is_number() || at->get<double>() < 0) return std::nullopt;
  return at->get<double>();
}

}  // namespace

Baseline make_baseline(const std::vector<std::string>& names, const netdetect::LinkReport& report,
                       std::chrono::system_clock::time_point now) {
  Baseline out;
  out.saved = utc(now);
  for (const auto& [pair, edge] : best_edges(report)) {
    BaselineLink& link =
        out.links[{names[static_cast<std::size_t>(pair.first)], names[static_cast<std::size_t>(pair.second)]}];
    link.bits_per_second = std::max(link.bits_per_second, edge.bits_per_second);
    if (edge.rtt_us > 0) link.rtt_us = link.rtt_us > 0 ? std::min(link.rtt_us, edge.rtt_us) : edge.rtt_us;
  }
  return out;
}

std::string to_json(const Baseline& baseline) {
  Json out;
  out["kind"] = kKind;
  out["version"] = kVersion;
  out["saved"] = baseline.saved;
  out["links"] = Json::array();
  for (const auto& [pair, link] : baseline.links) {
    Json one;
    one["from"] = pair.first;
    one["to"] = pair.second;
    one["bits_per_second"] = link.bits_per_second > 0 ? Json(std::round(link.bits_per_second)) : Json(nullptr);
    one["round_trip_us"] = link.rtt_us > 0 ? Json(std::round(link.rtt_us * 10) / 10) : Json(nullptr);
    out["links"].push_back(one);
  }
  return json_text(out, 2) + "\n";
}

Result<Baseline> parse_baseline(const std::string& json) {
  const Json in = Json::parse(json, nullptr, false);
  if (in.is_discarded()) return bad("it is not JSON, or was cut off");
  if (!in.is_object() || in.value("kind", Json()) != kKind) return bad("it is no baseline of drun check");
  const Json version = in.value("version", Json());
  if (!version.is_number_integer() || version != kVersion) {
    return bad("its version is " + version.dump() + ", this drun reads version " + std::to_string(kVersion));
  }
  Baseline out;
  const Json saved = in.value("saved", Json());
  const Json links = in.value("links", Json());
  if (!saved.is_string()) return bad("'saved' is no date");
  if (!links.is_array()) return bad("'links' is no list");
  out.saved = saved.get<std::string>();
  for (std::size_t i = 0; i < links.size(); ++i) {
    const Json& link = links[i];
    const std::string where = "links[" + std::to_string(i) + "]";
    if (!link.is_object()) return bad(where + " is no object");
    const Json from = link.value("from", Json()), to = link.value("to", Json());
    if (!from.is_string() || !to.is_string()) return bad(where + " lacks the names of its hosts");
    const auto rate = number(link, "bits_per_second"), rtt = number(link, "round_trip_us");
    if (!rate) return bad(where + ": 'bits_per_second' is no rate");
    if (!rtt) return bad(where + ": 'round_trip_us' is no time");
    out.links[{from.get<std::string>(), to.get<std::string>()}] = {*rate, *rtt};
  }
  return out;
}

std::vector<std::pair<int, int>> pairs_below_baseline(const std::vector<std::string>& names,
                                                      const std::vector<netdetect::Link>& first_pass,
                                                      const Baseline& baseline) {
  std::set<std::pair<int, int>> out;
  for (const auto& [pair, change] : changes_of(names, netdetect::edges_of(first_pass), baseline)) {
    const bool worse = (comparable_rate(change) && slower(change)) || (comparable_rtt(change) && farther(change));
    if (worse) out.insert(std::minmax(pair.first, pair.second));
  }
  return {out.begin(), out.end()};
}

std::vector<Finding> baseline_findings(const std::vector<std::string>& names, const netdetect::LinkReport& report,
                                       const Baseline& baseline) {
  const Changes changes = changes_of(names, best_edges(report), baseline);
  const Kind rate{
      "baseline-slower",
      comparable_rate,
      slower,
      [](const Change& c) { return c.then.bits_per_second; },
      [](const Change& c) { return c.now.bits_per_second; },
      [&](double now, double then) {
        return "moves " + rate_text(now) + ", it was " + rate_text(then) + " on " + baseline.saved;
      },
  };
  const Kind rtt{
      "baseline-latency",
      comparable_rtt,
      farther,
      [](const Change& c) { return c.then.rtt_us; },
      [](const Change& c) { return c.now.rtt_us; },
      [&](double now, double then) {
        return "a round trip takes " + time_text(now / 1e6) + ", it took " + time_text(then / 1e6) + " on " +
               baseline.saved;
      },
  };
  std::vector<double> shares;
  std::size_t n_rtt = 0, n_farther = 0;
  for (const auto& [pair, change] : changes) {
    if (comparable_rate(change)) shares.push_back(share(change));
    n_rtt += comparable_rtt(change) ? 1u : 0u;
    n_farther += comparable_rtt(change) && farther(change) ? 1u : 0u;
  }
  std::vector<Finding> out;
  // If even the better third is slower, the change is not due to particular hosts.
  const bool all_slower = shares.size() > 2 && netdetect::quantile(shares, 0.67) < kAllSlower;
  for (Finding& finding : Comparison(names, changes, rate).findings(all_slower)) out.push_back(std::move(finding));
  const bool all_farther = n_rtt > 2 && 3 * n_farther > 2 * n_rtt;
  for (Finding& finding : Comparison(names, changes, rtt).findings(all_farther)) out.push_back(std::move(finding));
  add_other_hosts(names, baseline, out);
  return out;
}

}  // namespace drun::check
