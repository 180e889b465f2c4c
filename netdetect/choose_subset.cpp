#include "netdetect/choose_subset.h"

#include <cstddef>
#include <set>
#include <utility>

#include "netdetect/reachability_matrix.h"

namespace drun::netdetect {
namespace {

// The remaining hosts, renumbered.
struct Rest {
  std::vector<int> index_of;  // by index in `hosts`: index among all hosts
  std::vector<HostInterfaces> hosts;
  Candidates candidates;
  std::vector<AttemptResult> results;
};

Rest without(const std::vector<HostInterfaces>& hosts, const Candidates& candidates,
             const std::vector<AttemptResult>& results, const std::set<int>& out) {
  Rest rest;
  std::vector<int> host_at(hosts.size(), -1);
  for (std::size_t h = 0; h < hosts.size(); ++h) {
    if (out.count(static_cast<int>(h)) > 0) continue;
    host_at[h] = static_cast<int>(rest.hosts.size());
    rest.index_of.push_back(static_cast<int>(h));
    rest.hosts.push_back(hosts[h]);
  }
  std::vector<int> candidate_at(candidates.tried.size(), -1);
  for (std::size_t c = 0; c < candidates.tried.size(); ++c) {
    Candidate candidate = candidates.tried[c];
    candidate.host = host_at[static_cast<std::size_t>(candidate.host)];
    if (candidate.host < 0) continue;
    candidate_at[c] = static_cast<int>(rest.candidates.tried.size());
    rest.candidates.tried.push_back(std::move(candidate));
  }
  for (Rejection rejection : candidates.rejected) {
    rejection.host = host_at[static_cast<std::size_t>(rejection.host)];
    if (rejection.host >= 0) rest.candidates.rejected.push_back(std::move(rejection));
  }
  rest.candidates.namespaces = number_namespaces(rest.hosts);
  for (AttemptResult result : results) {
    const auto from = static_cast<std::size_t>(result.attempt.from);
    const auto c = static_cast<std::size_t>(result.attempt.candidate);
    if (from >= hosts.size() || c >= candidates.tried.size() || host_at[from] < 0 || candidate_at[c] < 0) continue;
    result.attempt.from = host_at[from];
    result.attempt.candidate = candidate_at[c];
    rest.results.push_back(std::move(result));
  }
  return rest;
}

Choice spread(Choice choice, const std::vector<int>& index_of, std::size_t n_hosts) {
  Choice out;
  out.notes = std::move(choice.notes);
  out.warnings = std::move(choice.warnings);
  out.hosts.resize(n_hosts);
  out.reach.assign(n_hosts, std::vector<int>(n_hosts, -1));
  for (auto& host : out.hosts) host.reached_by_all = false;
  for (std::size_t h = 0; h < n_hosts; ++h) out.reach[h][h] = 1;
  for (std::size_t i = 0; i < choice.hosts.size(); ++i) {
    const auto to = static_cast<std::size_t>(index_of[i]);
    out.hosts[to] = std::move(choice.hosts[i]);
    for (std::size_t j = 0; j < index_of.size(); ++j) {
      out.reach[to][static_cast<std::size_t>(index_of[j])] = choice.reach[i][j];
    }
  }
  return out;
}

// Fills in the reachability, at any address, of hosts without a chosen address.
void fill_reach(const std::vector<HostInterfaces>& hosts, const Candidates& candidates,
                const std::vector<AttemptResult>& results, const std::set<int>& left_out,
                std::vector<std::vector<int>>& reach) {
  const ReachabilityVotes tally = tally_results(hosts, candidates, results);
  const ReachabilityMatrix directions(hosts, candidates, tally);
  for (std::size_t i = 0; i < hosts.size(); ++i) {
    for (std::size_t j = 0; j < hosts.size(); ++j) {
      if (left_out.count(static_cast<int>(i)) + left_out.count(static_cast<int>(j)) == 0 || i == j) continue;
      const Reach reached = directions.between(tally.namespaces[i], tally.namespaces[j]);
      if (tally.namespaces[i] == tally.namespaces[j]) {
        reach[i][j] = 1;
      } else if (reached != Reach::kUntried) {
        reach[i][j] = reached == Reach::kReached ? 1 : 0;
      }
    }
  }
}

}  // namespace

PartialChoice choose_subset(const std::vector<HostInterfaces>& hosts, const Candidates& candidates,
                            const std::vector<AttemptResult>& results, const std::vector<int>& gone) {
  PartialChoice out;
  std::set<int> left_out(gone.begin(), gone.end());
  for (;;) {
    const Rest rest = without(hosts, candidates, results, left_out);
    if (rest.hosts.size() < 2 && hosts.size() > 1) {
      out.choice = spread({}, {}, hosts.size());
      for (std::size_t h = 0; h < hosts.size(); ++h) left_out.insert(static_cast<int>(h));
      break;
    }
    std::vector<int> faulty;
    auto choice = choose(rest.hosts, rest.candidates, rest.results, faulty);
    if (choice) {
      out.choice = spread(std::move(*choice), rest.index_of, hosts.size());
      break;
    }
    if (!out.error) out.error = std::move(choice.error());
    for (const int host : faulty) left_out.insert(rest.index_of[static_cast<std::size_t>(host)]);
  }
  out.left_out.assign(left_out.begin(), left_out.end());
  if (!left_out.empty()) fill_reach(hosts, candidates, results, left_out, out.choice.reach);
  return out;
}

}  // namespace drun::netdetect
