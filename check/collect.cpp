#include "check/collect.h"

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <utility>

#include "check/check_times.h"

namespace drun::check {
namespace {

// Variables of a login's environment that may interfere with drun's choices.
constexpr const char* kVariables[] = {"NCCL_*",  "GLOO_*",  "TP_*",     "UCX_*",
                                      "*_proxy", "*_PROXY", "MASTER_*", "CUDA_VISIBLE_DEVICES"};

}  // namespace

CheckResult begin_result(const std::vector<launcher::AgentChannel*>& agents) {
  CheckResult out;
  for (const launcher::AgentChannel* agent : agents) {
    CheckedHost host;
    host.name = agent->name();
    host.host_name = agent->hello().host_name;
    host.login = agent->login().words;
    host.slots = agent->host().slots;
    host.interfaces = agent->hello().interfaces;
    out.hosts.push_back(std::move(host));
  }
  return out;
}

control::AskFacts facts_request(const CheckOptions& options) {
  control::AskFacts request;
  request.argv = options.command;
  request.working_directory = options.working_directory;
  request.environment = options.environment;
  request.variables.assign(std::begin(kVariables), std::end(kVariables));
  request.tool_ms = static_cast<std::uint32_t>(tool_time(options.depth).count());
  return request;
}

Task<void> ask_facts(launcher::AgentChannel& agent, control::AskFacts request, Deadline deadline, CheckedHost& host) {
  std::string body = control::encode(request);
  std::string what = "facts";
  auto frame = co_await agent.request(control::Type::kAskFacts, std::move(body), control::Type::kFacts, std::move(what),
                                      deadline);
  if (!frame) {
    set_error(host, std::move(frame.error()));
    co_return;
  }
  auto reply = control::decode<control::Facts>(frame->body);
  if (!reply) {
    set_error(host, std::move(reply.error()).with_subject(agent.name()));
    co_return;
  }
  host.facts = std::move(reply->facts);
}

void set_error(CheckedHost& host, Error error) {
  if (!host.error) host.error = std::move(error);
}

std::vector<int> gone_hosts(const std::vector<launcher::AgentChannel*>& agents, const CheckResult& result) {
  std::vector<int> out;
  for (std::size_t i = 0; i < agents.size(); ++i) {
    if (agents[i]->lost() || result.hosts[i].error) out.push_back(static_cast<int>(i));
  }
  return out;
}

std::vector<std::string> machines_of(const std::vector<launcher::AgentChannel*>& agents) {
  std::vector<std::string> out;
  for (const launcher::AgentChannel* agent : agents) out.push_back(agent->hello().boot_id);
  return out;
}

void store_network(const launcher::NetworkProbe& network, CheckResult& result) {
  for (auto& host : result.hosts) host.rejected.clear();
  for (const auto& rejection : network.candidates.rejected) {
    result.hosts[static_cast<std::size_t>(rejection.host)].rejected.push_back(rejection);
  }
  for (const auto& [host, error] : network.lost) set_error(result.hosts[static_cast<std::size_t>(host)], error);
  const auto& choice = network.most.choice;
  for (std::size_t i = 0; i < result.hosts.size() && i < choice.hosts.size(); ++i) {
    result.hosts[i].choice.reset();
    if (!choice.hosts[i].interface.empty()) result.hosts[i].choice = choice.hosts[i];
  }
  result.reach = choice.reach;
  if (network.most.error) result.network_error = network.most.error;
}

std::vector<std::string> host_names(const CheckResult& result) {
  std::vector<std::string> out;
  for (const auto& host : result.hosts) out.push_back(host.name);
  return out;
}

std::vector<LinkHost> link_hosts(const std::vector<std::string>& machines, const CheckResult& result) {
  std::vector<LinkHost> out;
  for (std::size_t i = 0; i < result.hosts.size(); ++i) {
    const CheckedHost& host = result.hosts[i];
    out.push_back(link_host(host.name, machines[i], host.choice, host.interfaces));
  }
  return out;
}

}  // namespace drun::check
