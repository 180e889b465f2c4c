#include "launcher/network/network.h"

#include <sodium.h>

#include <algorithm>
#include <limits>
#include <map>
#include <set>

#include "base/error_id.h"
#include "base/log.h"
#include "netdetect/later_attempts.h"
#include "netdetect/reachability_votes.h"

namespace drun::launcher {

namespace {

using netdetect::Attempt;
using netdetect::AttemptResult;
using netdetect::AttemptResults;
using netdetect::LaterAttempts;
using netdetect::Unanswered;
using std::chrono::milliseconds;

// Most addresses answer within a millisecond or never. The first round is short, so that unreachable addresses cost
// little. Attempts that timed out but might succeed get a second round, in which a lost SYN is retransmitted after 1 s.
// The third round runs only if there is no choice otherwise. Many hosts at once, or a switch that is busy with their
// ARP requests, may be too slow for the first round: what timed out in networks in which others were reached is
// repeated, before these hosts count as hosts that do not reach each other.
struct Round {
  milliseconds timeout;
  std::size_t hosts_at_once = std::numeric_limits<std::size_t>::max();
};
// Most attempts of the first round are at new addresses. Their ARP requests go to all hosts of a network, and a
// thousand hosts would send thousands of them within a millisecond.
constexpr Round kFirstRound = {milliseconds(150), 128};
constexpr Round kManyHostsRound = {milliseconds(400)};
constexpr Round kSecondRound = {milliseconds(1300)};
constexpr Round kThirdRound = {milliseconds(3300)};
constexpr int kParallel = 64;

struct Probing {
  std::vector<AgentChannel*> hosts;
  std::vector<int> ports;  // of each host's probe listener
  std::string token;
  Deadline deadline;
  StartWatch* watch = nullptr;

  void enter(std::size_t host) const {
    if (watch != nullptr) watch->enter(host, transport::Phase::kProbe);
  }
  void done(std::size_t host) const {
    if (watch != nullptr) watch->done(host);
  }
};

// All failures as one error; kNone if there are none.
Error combined(const std::map<int, Error>& errors) {
  Error out;
  for (const auto& [host, e] : errors) {
    out = out.code == Errc::kNone ? e : std::move(out).with_context("and " + e.message());
  }
  return out;
}

// Takes failed hosts out of the probing: no host tries them any more.
void drop_failed(Probing& probing, std::vector<Error>& errors, std::map<int, Error>& lost) {
  for (std::size_t i = 0; i < errors.size(); ++i) {
    if (errors[i].code == Errc::kNone) continue;
    probing.ports[i] = 0;
    lost.emplace(static_cast<int>(i), std::move(errors[i]));
  }
}

Task<void> listen_on(AgentChannel& host, const Probing& probing, int& port, Error& error) {
  control::ProbeListen order;
  order.token = probing.token;
  std::string body = control::encode(order);
  auto reply = co_await host.request(control::Type::kProbeListen, std::move(body), control::Type::kProbeListening,
                                     "probe", probing.deadline);
  if (!reply) {
    error = std::move(reply.error());
    co_return;
  }
  const auto answer = control::decode<control::Port>(reply->body);
  if (!answer || !answer->error.empty()) {
    error = Error(Errc::kUnreachable, host.name(), "probe: " + (answer ? answer->error : answer.error().cause))
                .with_id(error_id::kNoNetwork);
    co_return;
  }
  port = answer->port;
}

Task<void> run_on(AgentChannel& host, std::size_t index, const Probing& probing,
                  const netdetect::Candidates& candidates, std::vector<Attempt> attempts, milliseconds timeout,
                  std::vector<AttemptResult>& results, Error& error) {
  control::ProbeRun order;
  order.token = probing.token;
  order.timeout_ms = static_cast<std::uint32_t>(timeout.count());
  order.parallel = kParallel;
  for (std::size_t i = 0; i < attempts.size(); ++i) {
    const auto& candidate = candidates.tried[static_cast<std::size_t>(attempts[i].candidate)];
    netdetect::ProbeTarget target;
    target.id = static_cast<std::uint32_t>(i);
    target.address = candidate.address.text();
    target.port = probing.ports[static_cast<std::size_t>(candidate.host)];
    order.targets.push_back(std::move(target));
  }
  std::string body = control::encode(order);
  auto reply = co_await host.request(control::Type::kProbeRun, std::move(body), control::Type::kProbeResults, "probe",
                                     probing.deadline);
  if (!reply) {
    error = std::move(reply.error());
    co_return;
  }
  probing.done(index);
  auto answer = control::decode<control::ProbeResults>(reply->body);
  if (!answer) {
    error = std::move(answer.error()).with_subject(host.name());
    co_return;
  }
  for (auto& r : answer->results) {
    if (r.id >= attempts.size()) continue;
    AttemptResult result;
    result.attempt = attempts[r.id];
    result.result = std::move(r);
    results.push_back(std::move(result));
  }
}

// Adds one round's results to `results`, replacing those of the same attempt. Attempts from and to lost hosts are left
// out.
Task<void> run_round(asio::io_context& io, Probing& probing, const netdetect::Candidates& candidates,
                     const std::vector<Attempt>& attempts, const Round& round, AttemptResults& results,
                     std::map<int, Error>& lost) {
  if (attempts.empty()) co_return;
  const std::size_t n = probing.hosts.size();
  std::vector<std::vector<Attempt>> by_host(n);
  for (const auto& a : attempts) {
    const int to = candidates.tried[static_cast<std::size_t>(a.candidate)].host;
    if (lost.count(a.from) == 0 && lost.count(to) == 0) by_host[static_cast<std::size_t>(a.from)].push_back(a);
  }
  std::vector<AttemptResult> found;
  std::vector<Error> errors(n);
  for (std::size_t i = 0; i < n;) {
    TaskGroup group(io.get_executor());
    for (std::size_t at_once = 0; i < n && at_once < round.hosts_at_once; ++i) {
      if (by_host[i].empty()) continue;
      ++at_once;
      probing.enter(i);
      group.spawn(
          run_on(*probing.hosts[i], i, probing, candidates, std::move(by_host[i]), round.timeout, found, errors[i]));
    }
    co_await group.join();
  }
  drop_failed(probing, errors, lost);
  std::size_t n_reached = 0;
  for (auto& r : found) {
    if (reached(r)) ++n_reached;
    const auto key = std::make_pair(r.attempt.from, r.attempt.candidate);
    results[key] = std::move(r);
  }
  log::debug("probe: " + std::to_string(found.size()) + " attempts of up to " + std::to_string(round.timeout.count()) +
             " ms, " + std::to_string(n_reached) + " successful");
}

// Leaves out attempts at hosts that have been lost since: they say nothing about an address.
std::vector<AttemptResult> values(const AttemptResults& results, const netdetect::Candidates& candidates,
                                  const std::map<int, Error>& lost) {
  std::vector<AttemptResult> out;
  for (const auto& [key, r] : results) {
    const int to = candidates.tried[static_cast<std::size_t>(key.second)].host;
    if (lost.count(key.first) == 0 && lost.count(to) == 0) out.push_back(r);
  }
  return out;
}

netdetect::PartialChoice choose_subset(const NetworkProbe& probe, std::vector<AttemptResult> results) {
  std::vector<int> gone;
  for (const auto& [host, error] : probe.lost) gone.push_back(host);
  return netdetect::choose_subset(probe.inventories, probe.candidates, results, gone);
}

std::vector<Attempt> all_attempts(const std::vector<netdetect::HostInterfaces>& hosts,
                                  const netdetect::Candidates& candidates, int head, std::uint64_t seed) {
  const int n = static_cast<int>(hosts.size());
  auto planned = netdetect::plan_attempts(n, candidates, seed);
  if (head >= 0 && hosts.size() > netdetect::kFullPlanHosts) {
    for (int from = 0; from < n; ++from) {
      for (std::size_t c = 0; c < candidates.tried.size(); ++c) {
        if (from == head || candidates.tried[c].host != head) continue;
        Attempt a;
        a.from = from;
        a.candidate = static_cast<int>(c);
        planned.push_back(a);
      }
    }
  }
  std::vector<Attempt> out;
  std::set<std::pair<int, int>> known;
  for (const auto& a : planned) {
    const int to = candidates.tried[static_cast<std::size_t>(a.candidate)].host;
    const bool same =
        hosts[static_cast<std::size_t>(a.from)].net_namespace == hosts[static_cast<std::size_t>(to)].net_namespace;
    if (!same && known.emplace(a.from, a.candidate).second) out.push_back(a);
  }
  return out;
}

// True if an attempt that had failed succeeded when it was repeated.
bool has_improved(const AttemptResults& before, const AttemptResults& after) {
  return std::any_of(before.begin(), before.end(),
                     [&](const auto& item) { return !reached(item.second) && reached(after.at(item.first)); });
}

// True if every host that is not left out is reached by all hosts that tried it, at the address that was chosen for it.
bool all_good(const netdetect::PartialChoice& most) {
  if (most.error) return false;
  const auto& hosts = most.choice.hosts;
  std::size_t n_good = most.left_out.size();
  for (const auto& host : hosts) n_good += host.reached_by_all ? 1 : 0;
  return n_good == hosts.size();
}

// Hosts that some host does not reach, or for which nothing could be chosen.
std::vector<int> anomalies(const netdetect::PartialChoice& most) {
  std::vector<int> out = most.left_out;
  for (std::size_t i = 0; i < most.choice.hosts.size(); ++i) {
    const int host = static_cast<int>(i);
    const bool known = std::find(out.begin(), out.end(), host) != out.end();
    if (!known && !most.choice.hosts[i].reached_by_all) out.push_back(host);
  }
  return out;
}

// True if the cache had results that lead to a good choice.
bool take_cached(const ProbeCache& cache, NetworkProbe& out) {
  auto entry =
      cache.load(out.cache_key, out.inventories.size(), out.candidates.tried.size(), std::chrono::system_clock::now());
  if (!entry) return false;
  for (std::size_t c = 0; c < out.candidates.tried.size(); ++c) {
    out.candidates.tried[c].measured_mbps = entry->measured_mbps[c];
  }
  auto most = choose_subset(out, entry->results);
  if (!all_good(most)) {
    for (auto& candidate : out.candidates.tried) candidate.measured_mbps = 0;
    return false;
  }
  out.most = std::move(most);
  out.results = std::move(entry->results);
  out.age = entry->age;
  return true;
}

Task<void> run_rounds(asio::io_context& io, Probing& probing, const std::vector<Attempt>& attempts, NetworkProbe& out,
                      AttemptResults& results) {
  const auto choice_now = [&] { return choose_subset(out, values(results, out.candidates, out.lost)); };
  const auto unanswered = [&](Unanswered which) { return LaterAttempts(results, out.candidates).unanswered(which); };
  co_await run_round(io, probing, out.candidates, attempts, kFirstRound, results, out.lost);
  auto most = choice_now();
  if (!all_good(most) && probing.hosts.size() > netdetect::kFullPlanHosts) {
    const auto again = unanswered(Unanswered::kInReachedNetworks);
    co_await run_round(io, probing, out.candidates, again, kManyHostsRound, results, out.lost);
    most = choice_now();
  }
  if (all_good(most)) {
    const auto again = unanswered(Unanswered::kAtReachedAddresses);
    co_await run_round(io, probing, out.candidates, again, kSecondRound, results, out.lost);
    co_return;
  }
  const AttemptResults before = results;
  auto again = unanswered(Unanswered::kAll);
  for (const auto& attempt : LaterAttempts(results, out.candidates).untried(anomalies(most))) again.push_back(attempt);
  co_await run_round(io, probing, out.candidates, again, kSecondRound, results, out.lost);
  most = choice_now();
  if (all_good(most) || !(most.error || has_improved(before, results))) co_return;
  again = unanswered(Unanswered::kAll);
  co_await run_round(io, probing, out.candidates, again, kThirdRound, results, out.lost);
}

}  // namespace

Result<netdetect::Choice> NetworkProbe::choice() const {
  if (Error error = combined(lost); error.code != Errc::kNone) return fail(std::move(error));
  if (most.error) return fail(*most.error);
  return most.choice;
}

void keep(const ProbeCache& cache, const NetworkProbe& probe) {
  if (probe.cache_key.empty()) return;
  if (!probe.lost.empty() || !probe.most.left_out.empty() || !all_good(probe.most)) {
    cache.drop(probe.cache_key);
    return;
  }
  std::vector<int> measured;
  for (const auto& candidate : probe.candidates.tried) measured.push_back(candidate.measured_mbps);
  cache.store(probe.cache_key, probe.results, std::chrono::system_clock::now(), measured);
}

Task<Result<NetworkProbe>> probe_network(asio::io_context& io, std::vector<AgentChannel*> hosts, int head,
                                         std::vector<std::string> wanted, Deadline deadline, StartWatch* watch,
                                         const ProbeCache* cache) {
  NetworkProbe out;
  for (const AgentChannel* host : hosts) {
    netdetect::HostInterfaces h;
    h.host = host->name();
    h.net_namespace = host->hello().boot_id + "|" + host->hello().net_namespace;
    h.interfaces = host->hello().interfaces;
    out.inventories.push_back(std::move(h));
  }
  auto candidates = netdetect::find_candidates(out.inventories, wanted);
  if (!candidates) co_return fail(std::move(candidates.error()));
  out.candidates = std::move(*candidates);

  const auto attempts = all_attempts(out.inventories, out.candidates, head, randombytes_random());
  if (!attempts.empty()) out.cache_key = probe_key(out.inventories, out.candidates, head);
  if (cache != nullptr && !attempts.empty() && take_cached(*cache, out)) co_return out;
  if (watch != nullptr) {
    std::vector<std::string> names;
    for (const AgentChannel* host : hosts) names.push_back(host->name());
    watch->begin(Stage::kProbe, std::move(names));
  }

  Probing probing;
  probing.hosts = hosts;
  probing.ports.assign(hosts.size(), 0);
  probing.deadline = deadline;
  probing.watch = watch;
  probing.token.resize(16);
  randombytes_buf(probing.token.data(), probing.token.size());

  AttemptResults results;
  if (!attempts.empty()) {
    std::vector<Error> errors(hosts.size());
    TaskGroup group(io.get_executor());
    for (std::size_t i = 0; i < hosts.size(); ++i) {
      probing.enter(i);
      group.spawn(listen_on(*hosts[i], probing, probing.ports[i], errors[i]));
    }
    co_await group.join();
    drop_failed(probing, errors, out.lost);
    co_await run_rounds(io, probing, attempts, out, results);
  }
  if (watch != nullptr) watch->end();
  out.results = values(results, out.candidates, out.lost);
  out.most = choose_subset(out, out.results);
  co_return out;
}

}  // namespace drun::launcher
