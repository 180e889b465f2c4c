// The first steps of a check: what the agents say of their hosts, and which interfaces the network probe chose.
// docs/check.md, steps 2 and 3. One thread.
#pragma once

#include <string>
#include <vector>

#include "base/asio.h"
#include "base/error.h"
#include "check/check_options.h"
#include "check/check_result.h"
#include "check/link_host.h"
#include "launcher/connect/agent_channel.h"
#include "launcher/network/network.h"

namespace drun::check {

// A result that has no more than what the hellos of the agents say. Indices are those of `agents`.
CheckResult begin_result(const std::vector<launcher::AgentChannel*>& agents);

// The request for a host's facts. Pure.
control::AskFacts facts_request(const CheckOptions& options);

// Sends the request and stores the facts in `host`, or the error if there are none by the deadline. `host` must stay
// where it is until then.
Task<void> ask_facts(launcher::AgentChannel& agent, control::AskFacts request, Deadline deadline, CheckedHost& host);

// Stores the error of a host that takes no further part in the check. The first error of a host stays.
void set_error(CheckedHost& host, Error error);

// The hosts that take no further part: lost, or with an error.
std::vector<int> gone_hosts(const std::vector<launcher::AgentChannel*>& agents, const CheckResult& result);

// The boot ids of the hosts: hosts with the same one are containers of one machine.
std::vector<std::string> machines_of(const std::vector<launcher::AgentChannel*>& agents);

// Stores the interfaces that the probe chose and rejected, and the hosts that it lost. Pure. May be called again after
// the choice has changed.
void store_network(const launcher::NetworkProbe& network, CheckResult& result);

// The hosts of a result by their names, and as link_findings() needs them. `machines` is machines_of(). Pure.
std::vector<std::string> host_names(const CheckResult& result);
std::vector<LinkHost> link_hosts(const std::vector<std::string>& machines, const CheckResult& result);

}  // namespace drun::check
