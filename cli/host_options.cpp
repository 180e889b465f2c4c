#include "cli/host_options.h"

#include <CLI/CLI.hpp>
#include <algorithm>

#include "base/fd.h"
#include "base/text.h"
#include "cli/help.h"
#include "cli/usage.h"
#include "launcher/plan/allocation.h"
#include "launcher/plan/exclude.h"
#include "launcher/plan/hostfile.h"
#include "launcher/plan/hostlist.h"
#include "transport/ssh_config.h"

namespace drun::cli {

void describe_hosts(CLI::App& app, RawHostOptions& raw, Letters letters) {
  app.add_option("-H,--hosts", raw.hosts,
                 "a:2,me@b,@gpu,n[01-16]:8,[fd00::2]:2,c:gpus=0,2; default: the batch job's, or localhost")
      ->type_name("LIST")
      ->allow_extra_args(false)
      ->group(kHosts);  // else CLI11 removes the brackets of "[fd00::1],[fd00::2]"
  app.add_option("--hostfile", raw.hostfile,
                 "the same from a file, as mpirun, MPICH and DeepSpeed take it (also -hostfile F)")
      ->type_name("FILE")
      ->group(kHosts);
  app.add_option("--exclude", raw.exclude, "leave out these hosts: b,n[03-05],@bad")
      ->type_name("LIST")
      ->allow_extra_args(false)
      ->group(kHosts);
  app.add_option("-p,--ssh-port", raw.port, "ssh port of every host")->type_name("PORT")->group(kHosts);
  const std::string identity = letters == Letters::kAll ? "-i,--ssh-identity-file" : "--ssh-identity-file";
  app.add_option(identity, raw.identity, "private key for every host")->type_name("FILE")->group(kHosts);
  app.add_option("-F,--ssh-config", raw.ssh_config, "ssh config in place of ~/.ssh/config; none: no config")
      ->type_name("FILE")
      ->group(kHosts);
}

void describe_connection(CLI::App& app, RawHostOptions& raw) {
  app.add_option("--start-timeout", raw.start_timeout, "seconds until every host must be ready")
      ->type_name("S")
      ->capture_default_str()
      ->group(kTimeLimits);
  app.add_option("--transport", raw.transport, "how hosts are reached: drun's own ssh, or OpenSSH's client")
      ->type_name("ssh|openssh")
      ->transform(one_of({"ssh", "openssh"}))
      ->group(kHosts);
  app.add_option("--launch-agent", raw.launch_agent,
                 "run CMD HOST COMMAND in place of ssh; spaces separate CMD's words")
      ->type_name("CMD")
      ->group(kHosts);
  app.add_option("--agent-path", raw.agent_path,
                 "drun-agent on hosts other than this one, in place of the one that drun brings")
      ->type_name("PATH")
      ->group(kHosts);
}

void describe_log(CLI::App& app, RawHostOptions& raw) {
  app.add_flag("-v,--verbose", raw.verbose, "say what drun does (-vv: everything)")->group(kReports);
  app.add_option("--log-file", raw.log_file, "say it there")->type_name("FILE")->group(kReports);
}

void describe_config(CLI::App& app, RawHostOptions& raw) {
  app.add_option("--config", raw.config,
                 "options from this TOML file in place of the drun.toml that is found; none: from no file")
      ->type_name("FILE")
      ->group(kOther);
}

Result<int> worker_count(const std::string& text) {
  if (text.empty()) return 0;
  const auto n = parse_number(text);
  if (!n || *n > 1000000) {
    return fail(usage_error("-np", "'" + text + "' is not a number of workers", "-np 4"));
  }
  if (*n == 0) return fail(usage_error("-np", "0 workers", "-np 1, or leave it out to use all slots"));
  return static_cast<int>(*n);
}

namespace {

// The hosts that the user named; empty without -H and --hostfile.
Result<std::vector<Host>> named_hosts(const RawHostOptions& raw) {
  if (raw.hosts.empty() && raw.hostfile.empty()) return std::vector<Host>{};
  if (!raw.hosts.empty() && !raw.hostfile.empty()) {
    return fail(usage_error("-H", "can't be used together with --hostfile", "put all hosts into one of them"));
  }
  auto list = expand_groups(raw.hosts, raw.groups);
  if (!list) return fail(std::move(list.error()));
  auto hosts = list->empty() ? launcher::read_hostfile(raw.hostfile) : launcher::parse_hostlist(join(*list, ","));
  if (!hosts) return hosts;
  return launcher::add_slots(std::move(*hosts));
}

Result<std::vector<Host>> all_hosts(const RawHostOptions& raw, int default_slots,
                                    const launcher::Environment& own_env) {
  auto named = named_hosts(raw);
  if (!named) return named;
  const bool elsewhere =
      std::any_of(named->begin(), named->end(), [](const Host& host) { return lower(host.name) != "localhost"; });
  if (named->empty() || elsewhere) {
    if (auto several = launcher::one_of_several_tasks(own_env)) return fail(std::move(*several));
  }
  if (!named->empty() && !raw.hosts_are_found) return named;
  auto allocation = launcher::find_allocation(own_env, [](const std::string& path) { return read_file(path); });
  if (!allocation) return fail(std::move(allocation.error()));
  if (*allocation) return std::move((*allocation)->hosts);
  if (!named->empty()) return named;
  Host host;
  host.name = "localhost";
  host.slots = std::max(default_slots, 1);
  host.where = "the default";
  return std::vector<Host>{host};
}

Result<std::vector<Host>> excluded_hosts(const RawHostOptions& raw) {
  std::vector<Host> out;
  std::vector<std::string> groups;
  for (const auto& item : launcher::split_hostlist(join(raw.exclude, ","))) {
    if (starts_with(item, "@")) {
      groups.push_back(item);
      continue;
    }
    auto hosts = launcher::parse_excluded(item);
    if (!hosts) return hosts;
    out.insert(out.end(), hosts->begin(), hosts->end());
  }
  if (groups.empty()) return out;
  auto list = expand_groups(groups, raw.groups);
  if (!list) {
    Error error = list.error();
    error.subject = "--exclude";
    if (starts_with(error.hint, "-H ")) error.hint.replace(0, 2, "--exclude");
    return fail(std::move(error));
  }
  auto hosts = launcher::parse_hostlist(join(*list, ","));
  if (!hosts) return hosts;
  out.insert(out.end(), hosts->begin(), hosts->end());
  return out;
}

}  // namespace

Result<std::vector<Host>> chosen_hosts(const RawHostOptions& raw, int default_slots,
                                       const launcher::Environment& own_env) {
  auto hosts = all_hosts(raw, default_slots, own_env);
  if (!hosts || raw.exclude.empty()) return hosts;
  auto excluded = excluded_hosts(raw);
  if (!excluded) return excluded;
  return launcher::leave_out(std::move(*hosts), *excluded);
}

std::string typed_ssh_option(const CLI::App& app) {
  for (const char* name : {"--ssh-port", "--ssh-identity-file", "--ssh-config"}) {
    if (app.count(name) > 0) return name;
  }
  return {};
}

Result<void> check_launch_agent(const RawHostOptions& raw, const std::string& ssh_option) {
  if (ssh_option.empty() || raw.launch_agent.empty()) return {};
  return fail(usage_error(ssh_option, "--launch-agent's program does not get it",
                          "the option as the program's own: --launch-agent 'ssh -p 2222'"));
}

Result<launcher::ConnectOptions> connect_options(const RawHostOptions& raw) {
  launcher::ConnectOptions out;
  if (raw.port < 0 || raw.port > 65535) {
    return fail(usage_error("-p", std::to_string(raw.port) + " is not a port", "-p 22"));
  }
  out.ssh.port = raw.port;
  out.ssh.identity_file = raw.identity;
  out.ssh.config_file = raw.ssh_config;
  if (!raw.identity.empty()) {
    if (auto ok = transport::check_identity_file(raw.identity); !ok) return fail(std::move(ok.error()));
  }
  out.use_openssh = raw.transport == "openssh";
  for (const auto word : split(raw.launch_agent, ' ')) {
    if (!word.empty()) out.launch_agent.emplace_back(word);
  }
  out.agent_path = raw.agent_path;
  if (raw.agent_path.find_first_of(" \t'\"\\!$`;&|<>()*?[]{}#~") != std::string::npos) {
    return fail(usage_error("--agent-path", "a path with spaces or characters that a shell reads"));
  }
  const auto start = seconds("--start-timeout", raw.start_timeout, false);
  if (!start) return fail(start.error());
  out.start_timeout = std::chrono::duration_cast<std::chrono::seconds>(*start + std::chrono::milliseconds(999));
  return out;
}

log::Level log_level(const RawHostOptions& raw) {
  if (raw.verbose >= 2) return log::Level::kDebug;
  return raw.verbose == 1 || !raw.log_file.empty() ? log::Level::kInfo : log::Level::kOff;
}

}  // namespace drun::cli
