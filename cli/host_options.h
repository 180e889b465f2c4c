// The options that choose the hosts and how to reach them: the same for every command.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "base/host.h"
#include "base/log.h"
#include "cli/cli11.h"
#include "cli/config/host_groups.h"
#include "launcher/connect/connect.h"
#include "launcher/plan/worker_env.h"

namespace drun::cli {

// Options as CLI11 fills them in, unchecked.
struct RawHostOptions {
  std::vector<std::string> hosts;
  std::string hostfile;
  std::vector<std::string> exclude;
  int port = 0;
  std::string identity, ssh_config;
  double start_timeout = 60;
  std::string transport = "ssh", launch_agent, agent_path;
  int verbose = 0;
  std::string log_file;
  std::string config;
  std::vector<HostGroup> groups;  // for "@NAME" in hosts
  bool hosts_are_found = false;   // hosts and hostfile are those of a drun.toml that was found
};

// The short names that these options have: bench has another -i.
enum class Letters { kAll, kWithoutIdentity };

// In three parts, so that a command can put its own options between them. `raw` must outlive `app`.
void describe_hosts(CLI::App& app, RawHostOptions& raw, Letters letters = Letters::kAll);  // -H to -F
void describe_connection(CLI::App& app, RawHostOptions& raw);  // --start-timeout to --agent-path
void describe_log(CLI::App& app, RawHostOptions& raw);
void describe_config(CLI::App& app, RawHostOptions& raw);

// The number after -np; 0: there is none.
Result<int> worker_count(const std::string& text);
// Hosts with their slots added up, without those of --exclude. Without -H and --hostfile these are the hosts of the
// batch scheduler's job in `own_env`, or those of a drun.toml that was found, or localhost with `default_slots` (at
// least 1). An error if drun is one of several tasks of srun or mpirun, unless all hosts are named and are localhost.
Result<std::vector<Host>> chosen_hosts(const RawHostOptions& raw, int default_slots,
                                       const launcher::Environment& own_env);
// The first option on the command line that is ssh's alone; "" = none. Call it before files are applied.
std::string typed_ssh_option(const CLI::App& app);
// Refuses `ssh_option` beside --launch-agent, whose program would not get it.
Result<void> check_launch_agent(const RawHostOptions& raw, const std::string& ssh_option);
Result<launcher::ConnectOptions> connect_options(const RawHostOptions& raw);
log::Level log_level(const RawHostOptions& raw);

}  // namespace drun::cli
