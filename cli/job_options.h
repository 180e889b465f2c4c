// The options that every command has which starts workers.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "base/error.h"
#include "cli/host_options.h"
#include "launcher/run/job.h"

namespace drun::cli {

// What CLI11 fills in, before it is checked.
struct RawJobOptions : RawHostOptions {
  std::string np;
  std::vector<std::string> interfaces, exports;
  double timeout = 0;
  bool no_cache = false;
};

// `raw` must outlive `app`. How -x and --timeout are described is each command's own.
void describe_workers(CLI::App& app, RawJobOptions& raw);     // -np
void describe_interfaces(CLI::App& app, RawJobOptions& raw);  // --network-interfaces
void describe_cache(CLI::App& app, RawJobOptions& raw);       // --no-cache

// Where drun keeps what it may lose: the XDG base directory specification; "" if there is no place.
std::string cache_directory(const launcher::Environment& env);

// Hosts, connection, interfaces, -x and the deadline. What else is in job.env must be there already: it is checked.
Result<void> fill_job(const RawJobOptions& raw, const launcher::Environment& own_env, launcher::JobOptions& job);

}  // namespace drun::cli
