// `drun check`: asks hosts what they are like, lets them measure their links, and judges. docs/check.md has the steps.
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
#include "launcher/connect/connect.h"
#include "launcher/connect/host_link.h"
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
  double max_rate_bps = 0;                    // 0: as fast as it goes
  std::optional<std::size_t> gradient_bytes;  // of the prediction; nothing: 100 MB
  double step_seconds = 0;                    // 0: not given
  std::string baseline_file, save_baseline_file;
  std::vector<std::string> command;                // may be empty
  std::string working_directory;                   // where `command` is looked for
  std::map<std::string, std::string> environment;  // drun's own, which would go to the workers
  std::string cache_directory;                     // gets what the hosts found out about the network; "" = none
  std::chrono::milliseconds timeout{0};            // over what the depth takes; 0: none of the user's
};

// On its own io_context and thread. What fails on a host is in the result, and the others are checked.
CheckResult check_hosts(CheckOptions options, launcher::Reporter& reporter);

// The same for hosts that are connected already: `drun run --check quick`. Indices of the result are those of `hosts`.
// `network` gets what the hosts found out about each other, if they came so far, so that the job need not ask again.
Task<CheckResult> check_links(asio::io_context& io, std::vector<launcher::HostLink*> hosts, int head,
                              CheckOptions options, Deadline deadline, std::optional<launcher::NetworkProbe>* network);

// How long a check of this depth takes in all, to 32 hosts, the way to them included.
std::chrono::milliseconds check_time(CheckDepth depth);

// What is measured of each pair.
launcher::LinkTimes link_times(CheckDepth depth);

// drun's exit status for a result.
int check_status(const CheckResult& result, bool strict);

}  // namespace drun::check
