// The options of a check. Pure data.
#pragma once

#include <chrono>
#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/host.h"
#include "check/check_result.h"
#include "check/purpose.h"
#include "launcher/connect/connect.h"

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

}  // namespace drun::check
