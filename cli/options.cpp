#include "cli/options.h"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <climits>
#include <cstdlib>
#include <filesystem>

#include "base/fd.h"
#include "base/text.h"
#include "cli/argv.h"
#include "launcher/hostfile.h"
#include "launcher/hostlist.h"
#include "launcher/ssh_config.h"

namespace drun::cli {

namespace {

// What CLI11 fills in, before it is checked and turned into JobOptions.
struct Raw {
  std::string np;
  std::vector<std::string> hosts;
  std::string hostfile;
  int port = 0;
  std::string identity, ssh_config;
  std::vector<std::string> interfaces;
  std::vector<std::string> exports;
  std::string env_file, env_mode = "all";
  std::string wdir, stdin_to = "0", output_directory;
  bool tag = false, no_tag = false, timestamp = false, pty = false;
  double start_timeout = 60, timeout = 0, grace = 5, heartbeat_timeout = 30;
  std::string transport = "ssh", launch_agent, agent_path;
  bool dry_run = false, json = false, version = false, check_build = false;
  int verbose = 0;
  std::string log_file, report_file;
};

// A check that lists what can be typed, without CLI11's own list in the help.
CLI::Validator one_of(const std::string& option, std::vector<std::string> words) {
  return CLI::Validator(
      [option, words = std::move(words)](std::string& value) {
        if (std::find(words.begin(), words.end(), value) != words.end()) return std::string();
        return option + ": '" + value + "' is none of " + join(words, ", ");
      },
      "");
}

void describe(CLI::App& app, Raw& raw) {
  app.set_help_flag("-h,--help", "this text");
  app.add_option("--num-proc", raw.np, "workers to start (also -np N); default: all slots")->type_name("N");
  app.add_option("-H,--hosts", raw.hosts, "hosts and slots: a:2,root@b:4,node[01-16]:8,[fd00::2]:2; default: localhost")
      ->type_name("LIST");
  app.add_option("--hostfile", raw.hostfile,
                 "the same from a file, as mpirun, MPICH and DeepSpeed take it (also -hostfile F)")
      ->type_name("FILE");
  app.add_option("-p,--ssh-port", raw.port, "ssh port of every host")->type_name("PORT");
  app.add_option("-i,--ssh-identity-file", raw.identity, "private key for every host")->type_name("FILE");
  app.add_option("-F,--ssh-config", raw.ssh_config, "ssh config in place of ~/.ssh/config; none: no config")
      ->type_name("FILE");
  app.add_option("--network-interfaces,--network-interface", raw.interfaces,
                 "names or CIDRs of the NICs to use; default: found out by trying")
      ->type_name("LIST")
      ->delimiter(',');
  app.add_option("-x", raw.exports, "environment for the workers: NAME, NAME=VALUE, 'GLOB*'; wins over what drun sets")
      ->type_name("NAME[=V]")
      ->allow_extra_args(false);
  app.add_option("--env-file", raw.env_file, "NAME=VALUE lines for the workers' environment")->type_name("FILE");
  app.add_option("--env", raw.env_mode, "all: pass on drun's environment; none: only -x and --env-file")
      ->type_name("all|none")
      ->transform(one_of("--env", {"all", "none"}));
  app.add_option("--wdir", raw.wdir, "working directory of the workers; default: this one")->type_name("DIR");
  app.add_option("--stdin", raw.stdin_to, "who gets drun's standard input")->type_name("RANK|all|none");
  app.add_option("--output-filename", raw.output_directory,
                 "also write each rank's output to DIR/rank.N/stdout and stderr")
      ->type_name("DIR");
  app.add_flag("--tag-output", raw.tag, "start each line with [rank], also for one worker");
  app.add_flag("--no-tag-output", raw.no_tag, "never do so");
  app.add_flag("--timestamp-output", raw.timestamp, "start each line with the time");
  app.add_flag("--pty", raw.pty, "give each worker a terminal (for programs that buffer otherwise)");
  app.add_option("--start-timeout", raw.start_timeout, "seconds until every host must be ready")
      ->type_name("S")
      ->capture_default_str();
  app.add_option("--timeout", raw.timeout, "seconds until the job is ended; 0: never")
      ->type_name("S")
      ->capture_default_str();
  app.add_option("--grace", raw.grace, "seconds between TERM and KILL")->type_name("S")->capture_default_str();
  app.add_option("--heartbeat-timeout", raw.heartbeat_timeout, "seconds of silence after which a host is given up")
      ->type_name("S")
      ->capture_default_str();
  app.add_option("--transport", raw.transport, "how hosts are reached: drun's own ssh, or OpenSSH's client")
      ->type_name("ssh|openssh")
      ->transform(one_of("--transport", {"ssh", "openssh"}));
  app.add_option("--launch-agent", raw.launch_agent, "run CMD HOST COMMAND in place of ssh")->type_name("CMD");
  app.add_option("--agent-path", raw.agent_path, "drun-agent on the hosts, in place of the one that drun brings")
      ->type_name("PATH");
  app.add_flag("--dry-run", raw.dry_run, "show what would be started where, and start nothing");
  app.add_flag("--json", raw.json, "with --dry-run: as JSON");
  app.add_flag("-v,--verbose", raw.verbose, "say what drun does (-vv: everything)");
  app.add_option("--log-file", raw.log_file, "say it there")->type_name("FILE");
  app.add_option("--report", raw.report_file, "write there how the job ended, as JSON")->type_name("FILE");
  app.add_flag("--version", raw.version, "print the version");
  app.add_flag("--check-build", raw.check_build, "print what this drun was built with");
  app.set_config("--config", "", "options from a TOML file");
}

ValueOptions value_options(const CLI::App& app) {
  ValueOptions out;
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_expected_max() == 0) continue;
    for (const auto& name : option->get_lnames()) out.insert("--" + name);
    for (const auto& name : option->get_snames()) out.insert("-" + name);
  }
  return out;
}

std::vector<std::string> option_names(const CLI::App& app) {
  std::vector<std::string> out = {"-np", "-hostfile"};
  for (const CLI::Option* option : app.get_options()) {
    for (const auto& name : option->get_lnames()) out.push_back("--" + name);
  }
  return out;
}

std::string usage(const CLI::App& app) {
  std::string options;
  const std::string help = app.help();
  const auto at = help.find("Options:");
  if (at != std::string::npos) options = help.substr(at);
  return "drun starts a distributed program on many machines with one command.\n"
         "\n"
         "usage: drun [run] [options] [--] COMMAND [ARG...]\n"
         "\n"
         "  drun -np 4 ./train                                      four workers here: no ssh, no GPU needed\n"
         "  drun -np 2 -H localhost:1,host1:1 -p 12345 ./train      two machines, sshd on port 12345\n"
         "  drun --hostfile hosts python3 train.py                  all slots of a hostfile\n"
         "  drun -np 16 -H gpu[1-2]:8 -x NCCL_DEBUG=INFO python3 train.py\n"
         "\n" +
         options +
         "\nThe exit status is that of the worker that failed first (128+n after signal n); 2: bad usage; 68: a host\n"
         "can't be reached; 75: a deadline passed; 126, 127: the command can't be executed, does not exist;\n"
         "130: Ctrl-C. Each worker finds RANK, LOCAL_RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT and more in its\n"
         "environment: docs/environment.md.\n";
}

Error usage_error(const std::string& subject, const std::string& cause, const std::string& hint = "") {
  return Error(Errc::kUsage, subject, cause).with_hint(hint);
}

// CLI11's complaints in our words.
Error parse_error(const CLI::App& app, const CLI::ParseError& e, const std::vector<std::string>& args) {
  const std::string what = e.what();
  if (dynamic_cast<const CLI::ExtrasError*>(&e) != nullptr) {
    for (const auto& arg : args) {
      if (arg.size() < 2 || arg[0] != '-') continue;
      const std::string name = arg.substr(0, arg.find('='));
      const auto names = option_names(app);
      if (std::find(names.begin(), names.end(), name) != names.end()) continue;
      if (what.find(name) == std::string::npos) continue;
      auto near = nearest(name, names);
      for (const auto& candidate : names) {
        if (!near && name.size() > 3 && starts_with(candidate, name)) near = candidate;
      }
      return usage_error(name, "unknown option", near ? "did you mean " + *near + "?" : "see drun --help");
    }
    return usage_error("options", lower(what.substr(0, 1)) + what.substr(1), "see drun --help");
  }
  std::string cause = lower(what.substr(0, 1)) + what.substr(1);
  while (!cause.empty() && (cause.back() == '.' || cause.back() == '\n')) cause.pop_back();
  const auto colon = cause.find(": ");
  if (starts_with(cause, "--") && colon != std::string::npos) {
    return usage_error(cause.substr(0, colon), cause.substr(colon + 2), "see drun --help");
  }
  return usage_error("options", cause, "see drun --help");
}

Result<std::chrono::milliseconds> seconds(const char* option, double value, bool zero_allowed) {
  if (!(value >= 0) || value > 1e7 || (value == 0 && !zero_allowed)) {
    return fail(usage_error(option, "not a time in seconds", std::string(option) + " 30"));
  }
  return std::chrono::milliseconds(static_cast<long long>(value * 1000));
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

Result<std::vector<launcher::Host>> all_hosts(const Raw& raw, int np) {
  if (!raw.hosts.empty() && !raw.hostfile.empty()) {
    return fail(usage_error("-H", "can't be used together with --hostfile", "put all hosts into one of them"));
  }
  if (!raw.hostfile.empty()) {
    auto hosts = launcher::read_hostfile(raw.hostfile);
    if (!hosts) return hosts;
    return launcher::add_slots(std::move(*hosts));
  }
  if (!raw.hosts.empty()) {
    auto hosts = launcher::parse_hostlist(join(raw.hosts, ","));
    if (!hosts) return hosts;
    return launcher::add_slots(std::move(*hosts));
  }
  launcher::Host host;
  host.name = "localhost";
  host.slots = np > 0 ? np : 1;
  host.where = "the default";
  return std::vector<launcher::Host>{host};
}

Result<void> choose_stdin(const std::string& text, launcher::JobOptions& job) {
  if (text == "all") {
    job.stdin_mode = launcher::StdinMode::kAll;
  } else if (text == "none") {
    job.stdin_mode = launcher::StdinMode::kNone;
  } else {
    const auto rank = parse_number(text);
    if (!rank || *rank > 1000000) {
      return fail(usage_error("--stdin", "'" + text + "' is neither a rank nor all nor none", "--stdin 0"));
    }
    job.stdin_rank = static_cast<int>(*rank);
  }
  return {};
}

Result<void> check_command(const std::vector<std::string>& command, const Raw& raw) {
  if (command.empty()) {
    return fail(usage_error("command", "there is none", "drun -np 2 ./train   (see drun --help)"));
  }
  if (command[0].empty()) return fail(usage_error("command", "it is an empty word"));
  const std::string& word = command[0];
  if (!raw.hosts.empty() && launcher::looks_like_host_item(word) && ::access(word.c_str(), F_OK) != 0) {
    return fail(usage_error("command", "'" + word + "' looks like a host, and is not a file: a comma may be missing",
                            "-H " + join(raw.hosts, ",") + "," + word));
  }
  return {};
}

std::string current_directory() {
  // The name that the user went by, if it is this directory: with links it may be the one that all hosts share.
  const char* pwd = std::getenv("PWD");
  char buffer[PATH_MAX];
  if (::getcwd(buffer, sizeof buffer) == nullptr) return "/";
  std::error_code ec;
  if (pwd != nullptr && *pwd == '/' && std::filesystem::equivalent(pwd, buffer, ec)) return pwd;
  return buffer;
}

std::string absolute(const std::string& path) {
  return path.empty() || path[0] == '/' ? path : current_directory() + "/" + path;
}

Result<void> fill_job(const Raw& raw, const std::vector<std::string>& command, const launcher::Environment& own_env,
                      Options& out) {
  launcher::JobOptions& job = out.job;
  if (auto ok = check_command(command, raw); !ok) return ok;
  job.command = command;
  const auto np = worker_count(raw.np);
  if (!np) return fail(np.error());
  job.np = *np;
  auto hosts = all_hosts(raw, job.np);
  if (!hosts) return fail(std::move(hosts.error()));
  job.hosts = std::move(*hosts);
  if (raw.port < 0 || raw.port > 65535) {
    return fail(usage_error("-p", std::to_string(raw.port) + " is not a port", "-p 22"));
  }
  job.connect.ssh.port = raw.port;
  job.connect.ssh.identity_file = raw.identity;
  job.connect.ssh.config_file = raw.ssh_config;
  if (!raw.identity.empty()) {
    if (auto ok = launcher::check_identity_file(raw.identity); !ok) return ok;
  }
  job.connect.use_openssh = raw.transport == "openssh";
  for (const auto word : split(raw.launch_agent, ' ')) {
    if (!word.empty()) job.connect.launch_agent.emplace_back(word);
  }
  job.connect.agent_path = raw.agent_path;
  if (raw.agent_path.find_first_of(" \t'\"\\!$`;&|<>()*?[]{}#~") != std::string::npos) {
    return fail(usage_error("--agent-path", "a path with spaces or characters that a shell reads"));
  }
  job.interfaces = raw.interfaces;
  job.env.inherit = raw.env_mode == "all";
  job.env.exports = raw.exports;
  if (!raw.env_file.empty()) {
    auto text = read_file(raw.env_file);
    if (!text) return fail(usage_error("--env-file", text.error().cause));
    auto file = launcher::parse_env_file(*text, raw.env_file);
    if (!file) return fail(std::move(file.error()));
    job.env.file = std::move(*file);
  }
  if (auto ok = launcher::check_exports(job.env, own_env); !ok) return ok;
  job.own_env = own_env;
  job.working_directory = raw.wdir.empty() ? current_directory() : absolute(raw.wdir);
  if (auto ok = choose_stdin(raw.stdin_to, job); !ok) return ok;
  job.output.directory = absolute(raw.output_directory);
  job.output.timestamp = raw.timestamp;
  job.pty = raw.pty;
  const auto start = seconds("--start-timeout", raw.start_timeout, false);
  const auto timeout = seconds("--timeout", raw.timeout, true);
  const auto grace = seconds("--grace", raw.grace, true);
  const auto heartbeat = seconds("--heartbeat-timeout", raw.heartbeat_timeout, false);
  for (const auto* t : {&start, &timeout, &grace, &heartbeat}) {
    if (!*t) return fail(t->error());
  }
  job.connect.start_timeout = std::chrono::duration_cast<std::chrono::seconds>(*start + std::chrono::milliseconds(999));
  job.timeout = *timeout;
  job.grace = *grace;
  job.heartbeat_timeout = std::max(*heartbeat, std::chrono::milliseconds(1000));
  // Placement once, to see whether there is more than one worker; the job itself repeats it with what it finds.
  const auto placed = launcher::place(job.hosts, job.np);
  if (!placed) return fail(placed.error());
  if (job.stdin_mode == launcher::StdinMode::kRank && job.stdin_rank >= placed->size) {
    return fail(usage_error("--stdin", "there is no rank " + std::to_string(job.stdin_rank) + " among " +
                                           plural(static_cast<std::size_t>(placed->size), "worker")));
  }
  job.output.tag = (placed->size > 1 || raw.tag) && !raw.no_tag;
  return {};
}

}  // namespace

Result<Options> parse_options(std::vector<std::string> args, const launcher::Environment& own_env) {
  CLI::App app;
  Raw raw;
  describe(app, raw);
  const ValueOptions with_value = value_options(app);
  const SplitArgs parts = split_command(rewrite_argv(args, with_value), with_value);

  Options out;
  std::vector<std::string> reversed(parts.options.rbegin(), parts.options.rend());
  try {
    app.parse(reversed);
  } catch (const CLI::CallForHelp&) {
    out.action = Action::kHelp;
    out.help = usage(app);
    return out;
  } catch (const CLI::ParseError& e) {
    return fail(parse_error(app, e, parts.options));
  }
  out.dry_run = raw.dry_run;
  out.json = raw.json;
  out.log_level = raw.verbose >= 2                            ? log::Level::kDebug
                  : raw.verbose == 1 || !raw.log_file.empty() ? log::Level::kInfo
                                                              : log::Level::kOff;
  out.log_file = raw.log_file;
  out.report_file = absolute(raw.report_file);
  if (raw.version) {
    out.action = Action::kVersion;
    return out;
  }
  if (raw.check_build) {
    out.action = Action::kCheckBuild;
    return out;
  }
  if (auto ok = fill_job(raw, parts.command, own_env, out); !ok) return fail(std::move(ok.error()));
  return out;
}

}  // namespace drun::cli
