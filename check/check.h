// `drun check`: collects facts of hosts, lets them measure their links, and derives findings. docs/check.md has the
// steps.
#pragma once

#include <optional>
#include <vector>

#include "base/asio.h"
#include "check/check_options.h"
#include "check/check_result.h"
#include "launcher/connect/agent_channel.h"
#include "launcher/network/network.h"
#include "launcher/report/reporter.h"

namespace drun::check {

// Runs its own io_context in the calling thread. A failure of a host is in the result; the others are still checked.
CheckResult check_hosts(CheckOptions options, launcher::Reporter& reporter);

// The same for hosts that are connected already: `drun run --check quick`. Indices of the result are those of
// `hosts`. `network` receives the result of the network probe, if there is one, so that the job need not probe again.
Task<CheckResult> check_links(asio::io_context& io, std::vector<launcher::AgentChannel*> hosts, int head,
                              CheckOptions options, Deadline deadline, std::optional<launcher::NetworkProbe>* network);

}  // namespace drun::check
