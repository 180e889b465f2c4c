// The options that are common to all commands that start workers.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "cli/cli11.h"
#include "cli/host_options.h"
#include "launcher/run/job.h"

namespace drun::cli {

// Options as CLI11 fills them in, unchecked.
struct RawJobOptions : RawHostOptions {
  std::string np;
  std::vector<std::string> interfaces, exports;
  double timeout = 0;
  bool no_cache = false;
};

// `raw` must outlive `app`. Each command describes -x and --timeout itself.
void describe_workers(CLI::App& app, RawJobOptions& raw);     // -np
void describe_interfaces(CLI::App& app, RawJobOptions& raw);  // --network-interfaces
void describe_cache(CLI::App& app, RawJobOptions& raw);       // --no-cache

// The directory for drun's cache; "" = none.
std::string cache_directory(const launcher::Environment& env);

// Fills in hosts, connection, interfaces, -x and the deadline. Set the other members of job.env before the call: it
// checks job.env as a whole.
Result<void> fill_job(const RawJobOptions& raw, const launcher::Environment& own_env, launcher::JobOptions& job);

}  // namespace drun::cli
