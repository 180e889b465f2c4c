// `drun check`: collects facts of hosts, lets them measure their links, and derives findings. docs/check.md has the
// steps.
#pragma once

#include <chrono>
#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/asio.h"
#include "check/check_result.h"
#include "check/purpose.h"
#include "launcher/connect/agent_channel.h"
#include "launcher/connect/connect.h"
#include "launcher/network/link_tests.h"
#include "launcher/network/network.h"
#include "launcher/report/reporter.h"

namespace drun::check {

struct CheckOptions {
  std::vector<Host> hosts;  // after add_slots()
  launcher::ConnectOptions connect;
  std::vector<std::string> interfaces;  // --network-interfaces
  CheckDepth depth = CheckDepth::kDefault;
  Purpose purpose = Purpose::kAll;            // --for
  double max_rate_bps = 0;                    // 0: no limit
  std::optional<std::size_t> gradient_bytes;  // of the prediction; nullopt: 100 MB
  double step_seconds = 0;                    // 0: not given
  std::string baseline_file, save_baseline_file;
  std::vector<std::string> command;                // may be empty
  std::string working_directory;                   // where `command` is looked for
  std::map<std::string, std::string> environment;  // drun's own, which would go to the workers
  std::string cache_directory;                     // receives the result of the network probe; "" = none
  std::chrono::milliseconds timeout{0};            // --timeout, for the whole check; 0: none
};

// Runs its own io_context in the calling thread. A failure of a host is in the result; the others are still checked.
CheckResult check_hosts(CheckOptions options, launcher::Reporter& reporter);

// The same for hosts that are connected already: `drun run --check quick`. Indices of the result are those of
// `hosts`. `network` receives the result of the network probe, if there is one, so that the job need not probe again.
Task<CheckResult> check_links(asio::io_context& io, std::vector<launcher::AgentChannel*> hosts, int head,
                              CheckOptions options, Deadline deadline, std::optional<launcher::NetworkProbe>* network);

// Duration of a check of this depth with up to 32 hosts, including connecting to them.
std::chrono::milliseconds check_time(CheckDepth depth);

// Measurements of each pair at this depth.
launcher::LinkTimes link_times(CheckDepth depth);

// drun's exit status for a result.
int check_status(const CheckResult& result, bool strict);

}  // namespace drun::check
