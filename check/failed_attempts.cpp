#include "check/failed_attempts.h"

#include <algorithm>

#include "netdetect/network.h"
#include "netdetect/wording.h"

namespace drun::check {

ObstacleText text_of(Obstacle obstacle) {
  switch (obstacle) {
    case Obstacle::kFiltered:
      return {"direction-filtered", "no answer: a firewall drops it"};
    case Obstacle::kRefused:
      return {"direction-refused", "refused: a firewall rejects it, or another machine has the address"};
    case Obstacle::kRejected:
      return {"direction-refused", "host unreachable: a firewall rejects it, or nothing answers at the address"};
    case Obstacle::kNoRoute:
      return {"direction-no-route", "no route"};
    case Obstacle::kWrongSubnet:
      return {"wrong-subnet", "no answer from another subnet"};
    case Obstacle::kAnotherAnswers:
      return {"answered-by-another",
              "answered by something else: another program, or another machine with the address"};
    case Obstacle::kOther:
      break;
  }
  return {"direction-failed", "failed"};
}

FailedAttempts::List FailedAttempts::between(int a, int b) const {
  List out;
  for (std::size_t c = 0; c < candidates_.tried.size(); ++c) {
    const int to = candidates_.tried[c].host;
    if (to != a && to != b) continue;
    for (const netdetect::AttemptResult* r : tally_.candidates[c].attempts) {
      if (target(*r) == to && r->attempt.from == (to == a ? b : a)) out.push_back(r);
    }
  }
  return out;
}

FailedAttempts::List FailedAttempts::at(int host) const {
  List failed;
  for (std::size_t c = 0; c < candidates_.tried.size(); ++c) {
    const netdetect::Candidate& tried = candidates_.tried[c];
    if (tried.host != host) continue;
    if (!chosen(host).bytes.empty() && !(tried.address == chosen(host))) continue;
    for (const netdetect::AttemptResult* a : tally_.candidates[c].attempts) {
      if (!netdetect::reached(*a)) failed.push_back(a);
    }
  }
  return failed;
}

FailedAttempts::List FailedAttempts::at_chosen(int from, int to) const {
  List out;
  for (std::size_t c = 0; c < candidates_.tried.size(); ++c) {
    const netdetect::Candidate& tried = candidates_.tried[c];
    if ((to >= 0 && tried.host != to) || !(tried.address == chosen(tried.host))) continue;
    for (const netdetect::AttemptResult* a : tally_.candidates[c].attempts) {
      if (target(*a) != tried.host || netdetect::reached(*a) || (from >= 0 && a->attempt.from != from)) continue;
      out.push_back(a);
    }
  }
  return out;
}

Obstacle FailedAttempts::obstacle(const netdetect::AttemptResult& a) const {
  switch (a.result.outcome) {
    case netdetect::ProbeOutcome::kTimedOut:
      return is_elsewhere(a) ? Obstacle::kWrongSubnet : Obstacle::kFiltered;
    case netdetect::ProbeOutcome::kUnreachable:
      return is_elsewhere(a) ? Obstacle::kWrongSubnet : Obstacle::kNoRoute;
    case netdetect::ProbeOutcome::kHostUnreachable:
      return Obstacle::kRejected;
    case netdetect::ProbeOutcome::kRefused:
      return Obstacle::kRefused;
    case netdetect::ProbeOutcome::kWrongPeer:
      return Obstacle::kAnotherAnswers;
    default:
      return Obstacle::kOther;
  }
}

bool FailedAttempts::is_elsewhere(const netdetect::AttemptResult& a) const {
  const auto outcome = a.result.outcome;
  const bool is_silent = outcome == netdetect::ProbeOutcome::kTimedOut ||
                         outcome == netdetect::ProbeOutcome::kUnreachable ||
                         outcome == netdetect::ProbeOutcome::kHostUnreachable;
  return is_silent && !in_network_of(a.attempt.from, candidate(a).address);
}

bool FailedAttempts::in_network_of(int host, const netdetect::Address& address) const {
  for (const auto& nic : hosts_[static_cast<std::size_t>(host)].interfaces) {
    for (const auto& own : nic.addresses) {
      if (nic.up && !own.link_local && netdetect::in_network(netdetect::network_of(own), address)) return true;
    }
  }
  return false;
}

std::string FailedAttempts::line(const netdetect::AttemptResult& a) const {
  const netdetect::Candidate& to = candidate(a);
  const auto& nic = hosts_[static_cast<std::size_t>(to.host)].interfaces[static_cast<std::size_t>(to.interface)];
  std::string text = name(a.attempt.from) + " to " + name(to.host) + ", " + nic.name + " " + to.address.text() + ": ";
  if (is_elsewhere(a)) return text + netdetect::outcome_words(a.result) + ", from another subnet";
  return text + netdetect::outcome_words(a.result);
}

std::vector<std::string> FailedAttempts::lines(List attempts) const {
  const auto elsewhere = [this](const netdetect::AttemptResult* a) { return is_elsewhere(*a); };
  if (!std::all_of(attempts.begin(), attempts.end(), elsewhere)) {
    attempts.erase(std::remove_if(attempts.begin(), attempts.end(), elsewhere), attempts.end());
  }
  std::vector<std::string> out;
  for (const netdetect::AttemptResult* a : attempts) out.push_back(line(*a));
  return out;
}

}  // namespace drun::check
