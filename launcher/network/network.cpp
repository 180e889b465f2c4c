#include "launcher/network/network.h"

#include <sodium.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/error_id.h"

namespace drun::launcher {

namespace {

using netdetect::Attempt;
using netdetect::AttemptResult;
using std::chrono::milliseconds;

// Most addresses answer within a millisecond or never. The first round is short, so that unreachable addresses cost
// little. Attempts that timed out but might succeed get a second round, in which a lost SYN is retransmitted after 1 s.
// The third round runs only if there is no choice otherwise.
constexpr auto kFirstRound = milliseconds(150);
constexpr auto kSecondRound = milliseconds(1300);
constexpr auto kThirdRound = milliseconds(3300);
constexpr int kParallel = 64;
constexpr std::size_t kUnlimitedPairs = 32;

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
                     const std::vector<Attempt>& attempts, milliseconds timeout,
                     std::map<std::pair<int, int>, AttemptResult>& results, std::map<int, Error>& lost) {
  const std::size_t n = probing.hosts.size();
  std::vector<std::vector<Attempt>> by_host(n);
  for (const auto& a : attempts) {
    const int to = candidates.tried[static_cast<std::size_t>(a.candidate)].host;
    if (lost.count(a.from) == 0 && lost.count(to) == 0) by_host[static_cast<std::size_t>(a.from)].push_back(a);
  }
  std::vector<AttemptResult> round;
  std::vector<Error> errors(n);
  TaskGroup group(io.get_executor());
  for (std::size_t i = 0; i < n; ++i) {
    if (by_host[i].empty()) continue;
    probing.enter(i);
    group.spawn(run_on(*probing.hosts[i], i, probing, candidates, std::move(by_host[i]), timeout, round, errors[i]));
  }
  co_await group.join();
  drop_failed(probing, errors, lost);
  for (auto& r : round) {
    const auto key = std::make_pair(r.attempt.from, r.attempt.candidate);
    results[key] = std::move(r);
  }
}

// Leaves out attempts at hosts that have been lost since: they say nothing about an address.
std::vector<AttemptResult> values(const std::map<std::pair<int, int>, AttemptResult>& results,
                                  const netdetect::Candidates& candidates, const std::map<int, Error>& lost) {
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
  if (head >= 0 && hosts.size() > kUnlimitedPairs) {
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

using Results = std::map<std::pair<int, int>, AttemptResult>;

bool is_reached(const Results& results, const std::pair<int, int>& key) {
  return results.at(key).result.outcome == netdetect::ProbeOutcome::kReached;
}

// True if an attempt that had failed succeeded when it was repeated.
bool has_improved(const Results& before, const Results& after) {
  return std::any_of(before.begin(), before.end(), [&](const auto& item) {
    return !is_reached(before, item.first) && is_reached(after, item.first);
  });
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

class Again {
 public:
  Again(const Results& results, const netdetect::Candidates& candidates) : results_(results), candidates_(candidates) {
    for (const auto& [key, r] : results) {
      const int to = candidates.tried[static_cast<std::size_t>(key.second)].host;
      tried_.emplace(key.first, to);
      if (r.result.outcome != netdetect::ProbeOutcome::kReached) continue;
      reached_.insert(key.second);
      met_.emplace(key.first, to);
    }
  }

  // Attempts that timed out: all of them, or only those at an address that another host reached.
  std::vector<Attempt> timed_out(bool all) const {
    std::vector<Attempt> out;
    for (const auto& [key, r] : results_) {
      // A connection whose proof did not arrive in time may have lost a segment.
      if (r.result.outcome != netdetect::ProbeOutcome::kTimedOut &&
          r.result.outcome != netdetect::ProbeOutcome::kWrongPeer)
        continue;
      if (all || reached_.count(key.second) > 0) out.push_back(r.attempt);
    }
    return out;
  }

  // If only a part of all pairs was tried: the other direction of pairs that failed, and all pairs of anomalies,
  // because any two hosts of a job must be able to connect.
  std::vector<Attempt> untried(const std::vector<int>& anomalies) const {
    std::set<std::pair<int, int>> wanted;
    for (const auto& [from, to] : tried_) {
      if (met_.count({from, to}) == 0) wanted.emplace(to, from);
    }
    for (const int from : anomalies) {
      for (const int to : anomalies) {
        if (anomalies.size() <= kUnlimitedPairs) wanted.emplace(from, to);
      }
    }
    std::vector<Attempt> out;
    for (const auto& [from, to] : wanted) {
      if (tried_.count({from, to}) > 0 || is_one_namespace(from, to)) continue;
      for (std::size_t c = 0; c < candidates_.tried.size(); ++c) {
        if (candidates_.tried[c].host != to) continue;
        Attempt attempt;
        attempt.from = from;
        attempt.candidate = static_cast<int>(c);
        out.push_back(attempt);
      }
    }
    return out;
  }

 private:
  bool is_one_namespace(int a, int b) const {
    return candidates_.namespaces[static_cast<std::size_t>(a)] == candidates_.namespaces[static_cast<std::size_t>(b)];
  }

  const Results& results_;
  const netdetect::Candidates& candidates_;
  std::set<int> reached_;                      // candidates
  std::set<std::pair<int, int>> tried_, met_;  // hosts: from, to
};

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

  std::map<std::pair<int, int>, AttemptResult> results;
  if (!attempts.empty()) {
    std::vector<Error> errors(hosts.size());
    TaskGroup group(io.get_executor());
    for (std::size_t i = 0; i < hosts.size(); ++i) {
      probing.enter(i);
      group.spawn(listen_on(*hosts[i], probing, probing.ports[i], errors[i]));
    }
    co_await group.join();
    drop_failed(probing, errors, out.lost);
    co_await run_round(io, probing, out.candidates, attempts, kFirstRound, results, out.lost);
    auto most = choose_subset(out, values(results, out.candidates, out.lost));
    if (all_good(most)) {
      const auto again = Again(results, out.candidates).timed_out(false);
      if (!again.empty()) co_await run_round(io, probing, out.candidates, again, kSecondRound, results, out.lost);
    } else {
      const Results before = results;
      auto again = Again(results, out.candidates).timed_out(true);
      for (const auto& attempt : Again(results, out.candidates).untried(anomalies(most))) again.push_back(attempt);
      co_await run_round(io, probing, out.candidates, again, kSecondRound, results, out.lost);
      most = choose_subset(out, values(results, out.candidates, out.lost));
      again = Again(results, out.candidates).timed_out(true);
      if (!all_good(most) && (most.error || has_improved(before, results))) {
        co_await run_round(io, probing, out.candidates, again, kThirdRound, results, out.lost);
      }
    }
  }
  if (watch != nullptr) watch->end();
  out.results = values(results, out.candidates, out.lost);
  out.most = choose_subset(out, out.results);
  co_return out;
}

}  // namespace drun::launcher
