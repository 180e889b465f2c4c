#include "check/judge.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <utility>

#include "check/collect.h"
#include "check/connect_findings.h"
#include "check/host_findings.h"
#include "check/link_findings.h"
#include "check/reach_findings.h"

namespace drun::check {
namespace {

constexpr std::size_t kDefaultGradient = 100'000'000;

void append(std::vector<Finding>& all, std::vector<Finding> more) {
  std::move(more.begin(), more.end(), std::back_inserter(all));
}

void judge_network(const Observations& seen, const CheckOptions& options, CheckResult& result) {
  const launcher::NetworkProbe& network = *seen.network;
  append(result.findings, reach_findings(network.inventories, network.candidates, network.results, network.most,
                                         seen.gone, options.purpose));
  result.links.max_rate = options.max_rate_bps;
  if (options.max_rate_bps > 0) {
    result.notes.push_back("rates, and what is predicted of them, are those that --max-rate allows");
  }
  append(result.findings, link_findings(link_hosts(seen.machines, result), result.links));
  if (seen.baseline != nullptr) {
    append(result.findings, baseline_findings(host_names(result), result.links, *seen.baseline));
  }
}

void predict_costs(const Observations& seen, const CheckOptions& options, CheckResult& result) {
  CostInput input;
  for (const CheckedHost& host : result.hosts) {
    input.slots.push_back(host.choice && !host.error ? host.slots : 0);
    input.cores.push_back(host.facts ? host.facts->n_cpus : 0);
  }
  input.machines = seen.machines;
  auto predicted =
      predict(input, result.links, options.gradient_bytes.value_or(kDefaultGradient), options.step_seconds);
  if (!predicted.curve.empty()) result.predicted = std::move(predicted);
}

std::vector<ExaminedHost> examined_hosts(const Observations& seen, const CheckResult& result) {
  std::vector<ExaminedHost> out;
  for (std::size_t i = 0; i < result.hosts.size(); ++i) {
    const CheckedHost& host = result.hosts[i];
    ExaminedHost examined;
    examined.name = host.name;
    examined.login = host.login;
    examined.slots = host.slots;
    if (host.facts) {
      examined.facts = &*host.facts;
      examined.clock_offset_ms = seen.clock_offsets_ms[i];
    }
    if (host.choice) {
      examined.interface = host.choice->interface;
      examined.address = host.choice->address.text();
    }
    out.push_back(std::move(examined));
  }
  return out;
}

HostQuestion host_question(const CheckOptions& options) {
  HostQuestion question;
  question.has_command = !options.command.empty();
  for (std::size_t i = 1; i < options.command.size() && question.script.empty(); ++i) {
    if (options.command[i].rfind('-', 0) != 0) question.script = options.command[i];
  }
  question.environment = options.environment;
  return question;
}

void judge_hosts(const Observations& seen, const CheckOptions& options, CheckResult& result) {
  append(result.findings, host_findings(examined_hosts(seen, result), host_question(options)));
  for (std::size_t i = 0; i < result.hosts.size(); ++i) {
    const CheckedHost& host = result.hosts[i];
    if (!host.error) continue;
    Finding finding = unreachable_finding(static_cast<int>(i), *host.error);
    if (finding.command.empty() && !host.login.empty()) finding.command = host.login + " true";  // lost meanwhile
    result.findings.push_back(std::move(finding));
  }
}

}  // namespace

void judge(const Observations& seen, const CheckOptions& options, CheckResult& result) {
  if (seen.network != nullptr) {
    judge_network(seen, options, result);
    predict_costs(seen, options, result);
  }
  judge_hosts(seen, options, result);
}

}  // namespace drun::check
