#include "launcher/network.h"

#include <sodium.h>

#include <map>
#include <set>

#include "base/log.h"

namespace drun::launcher {

namespace {

using netdetect::Attempt;
using netdetect::AttemptResult;
using std::chrono::milliseconds;

// Most addresses answer within a millisecond or never. The first round is short, so that decoys cost little; what was
// not reached then, but might have been (a lost SYN comes again after 1 s), gets a second one.
constexpr auto kFirstRound = milliseconds(400);
constexpr auto kSecondRound = milliseconds(3300);
constexpr int kParallel = 64;
constexpr int kUnlimitedPairs = 32;

struct Probing {
  std::vector<HostLink*> hosts;
  std::vector<int> ports;  // of each host's probe listener
  std::string token;
  Deadline deadline;
  StartWatch* watch = nullptr;

  void enter(std::size_t host) const {
    if (watch != nullptr) watch->enter(host, Phase::kProbe);
  }
  void done(std::size_t host) const {
    if (watch != nullptr) watch->done(host);
  }
};

// All that failed as one error; none: kNone.
Error combined(std::vector<Error>& errors) {
  Error out;
  for (auto& e : errors) {
    if (e.code == Errc::kNone) continue;
    if (out.code == Errc::kNone) {
      out = std::move(e);
    } else {
      out = std::move(out).with_context("and " + e.message());
    }
  }
  return out;
}

Task<void> listen_on(HostLink& host, const Probing& probing, int& port, Error& error) {
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
    error = Error(Errc::kUnreachable, host.name(), "probe: " + (answer ? answer->error : answer.error().cause));
    co_return;
  }
  port = answer->port;
}

Task<void> run_on(HostLink& host, std::size_t index, const Probing& probing, const netdetect::Candidates& candidates,
                  std::vector<Attempt> attempts, milliseconds timeout, std::vector<AttemptResult>& results,
                  Error& error) {
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

// Adds one round's results to `results`, replacing those of the same attempt.
Task<Result<void>> run_round(asio::io_context& io, const Probing& probing, const netdetect::Candidates& candidates,
                             const std::vector<Attempt>& attempts, milliseconds timeout,
                             std::map<std::pair<int, int>, AttemptResult>& results) {
  const std::size_t n = probing.hosts.size();
  std::vector<std::vector<Attempt>> by_host(n);
  for (const auto& a : attempts) by_host[static_cast<std::size_t>(a.from)].push_back(a);
  std::vector<AttemptResult> round;
  std::vector<Error> errors(n);
  TaskGroup group(io.get_executor());
  for (std::size_t i = 0; i < n; ++i) {
    if (by_host[i].empty()) continue;
    probing.enter(i);
    group.spawn(run_on(*probing.hosts[i], i, probing, candidates, std::move(by_host[i]), timeout, round, errors[i]));
  }
  co_await group.join();
  if (Error error = combined(errors); error.code != Errc::kNone) co_return fail(std::move(error));
  for (auto& r : round) {
    const auto key = std::make_pair(r.attempt.from, r.attempt.candidate);
    results[key] = std::move(r);
  }
  co_return Result<void>();
}

std::vector<AttemptResult> values(const std::map<std::pair<int, int>, AttemptResult>& results) {
  std::vector<AttemptResult> out;
  for (const auto& [key, r] : results) out.push_back(r);
  return out;
}

std::vector<Attempt> all_attempts(const std::vector<netdetect::HostInterfaces>& hosts,
                                  const netdetect::Candidates& candidates, int head, std::uint64_t seed) {
  const int n = static_cast<int>(hosts.size());
  auto planned = netdetect::plan_attempts(n, candidates, seed);
  if (head >= 0 && n > kUnlimitedPairs) {
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

// Timed-out attempts that a second, longer try may still turn around.
std::vector<Attempt> worth_retrying(const std::map<std::pair<int, int>, AttemptResult>& results, bool all) {
  std::set<int> reached;
  for (const auto& [key, r] : results) {
    if (r.result.outcome == netdetect::ProbeOutcome::kReached) reached.insert(key.second);
  }
  std::vector<Attempt> out;
  for (const auto& [key, r] : results) {
    if (r.result.outcome != netdetect::ProbeOutcome::kTimedOut) continue;
    if (all || reached.count(key.second) > 0) out.push_back(r.attempt);
  }
  return out;
}

}  // namespace

Task<Result<netdetect::Choice>> detect_network(asio::io_context& io, std::vector<HostLink*> hosts, int head,
                                               std::vector<std::string> wanted, Deadline deadline, StartWatch* watch) {
  std::vector<netdetect::HostInterfaces> inventories;
  for (const HostLink* host : hosts) {
    netdetect::HostInterfaces h;
    h.host = host->name();
    h.net_namespace = host->hello().boot_id + "|" + host->hello().net_namespace;
    h.interfaces = host->hello().interfaces;
    inventories.push_back(std::move(h));
  }
  auto candidates = netdetect::find_candidates(inventories, wanted);
  if (!candidates) co_return fail(std::move(candidates.error()));
  for (const auto& r : candidates->rejected) {
    log::debug(inventories[static_cast<std::size_t>(r.host)].host + ": " + r.interface + " " + r.address + ": " +
               r.reason);
  }

  Probing probing;
  probing.hosts = hosts;
  probing.ports.assign(hosts.size(), 0);
  probing.deadline = deadline;
  probing.watch = watch;
  probing.token.resize(16);
  randombytes_buf(probing.token.data(), probing.token.size());

  if (watch != nullptr) {
    std::vector<std::string> names;
    for (const HostLink* host : hosts) names.push_back(host->name());
    watch->begin(Stage::kProbe, std::move(names));
  }
  const auto attempts = all_attempts(inventories, *candidates, head, randombytes_random());
  std::map<std::pair<int, int>, AttemptResult> results;
  if (!attempts.empty()) {
    std::vector<Error> errors(hosts.size());
    TaskGroup group(io.get_executor());
    for (std::size_t i = 0; i < hosts.size(); ++i) {
      probing.enter(i);
      group.spawn(listen_on(*hosts[i], probing, probing.ports[i], errors[i]));
    }
    co_await group.join();
    if (Error error = combined(errors); error.code != Errc::kNone) co_return fail(std::move(error));
    auto done = co_await run_round(io, probing, *candidates, attempts, kFirstRound, results);
    if (!done) co_return fail(std::move(done.error()));
    const bool good = netdetect::choose(inventories, *candidates, values(results)).has_value();
    const auto again = worth_retrying(results, !good);
    if (!again.empty()) {
      done = co_await run_round(io, probing, *candidates, again, kSecondRound, results);
      if (!done) co_return fail(std::move(done.error()));
    }
  }
  if (watch != nullptr) watch->end();
  auto choice = netdetect::choose(inventories, *candidates, values(results));
  if (choice) {
    for (const auto& note : choice->notes) log::info(note);
  }
  co_return choice;
}

}  // namespace drun::launcher
