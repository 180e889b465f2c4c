// Measures the links between the hosts of a check, and repeats what looks bad. docs/check.md, steps 4 and 5. One
// thread.
#pragma once

#include <vector>

#include "base/asio.h"
#include "check/baseline.h"
#include "check/check_options.h"
#include "check/check_result.h"
#include "launcher/connect/agent_channel.h"
#include "launcher/network/network.h"

namespace drun::check {

// Has the agents measure, and stores the measurements and notes in `result`, which store_network() has filled. If the
// choice between networks depends on their speeds, measures these first and repeats the choice, in `network` and in
// `result`. `deadline` and `latest` are those of link_schedule(); `baseline` may be null: pairs below it are measured
// again. Returns false if there was no time for all speeds that the choice depends on. Does nothing if fewer than two
// hosts have an interface.
Task<bool> measure_links(asio::io_context& io, std::vector<launcher::AgentChannel*> agents, const CheckOptions& options,
                         const Baseline* baseline, Deadline deadline, Deadline latest, launcher::NetworkProbe& network,
                         CheckResult& result);

}  // namespace drun::check
