#include "cli/options.h"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>

#include "base/fd.h"
#include "base/program_folder.h"
#include "base/text.h"
#include "cli/argv.h"
#include "cli/command_words.h"
#include "cli/compat_folder.h"
#include "cli/config/config_files.h"
#include "cli/help.h"
#include "cli/job_options.h"
#include "cli/paths.h"
#include "cli/subcommand.h"
#include "cli/usage.h"
#include "launcher/plan/host_item.h"
#include "launcher/plan/hostlist.h"
#include "launcher/plan/rank_list.h"

namespace drun::cli {

namespace {

// Options as CLI11 fills them in, before they are checked and turned into JobOptions.
struct Raw : RawJobOptions {
  std::string env_file, env_mode = "all";
  std::string per_node;  // workers on each host
  bool oversubscribe = false;
  std::string bind_to = "none";
  std::string mpi = "refuse", compat;
  std::string wdir, stdin_to = "0", output_directory;
  std::string tag, ranks;
  bool no_tag = false, timestamp = false, merges_stderr = false, pty = false;
  std::string events;
  double stack_timeout = 10, stall_timeout = 60, grace = 5, heartbeat_timeout = 30;
  bool dry_run = false, json = false, version = false, check_build = false;
  std::optional<int> explained_rank;
  std::string report_file, timeline, check;
};

void describe_slots(CLI::App& app, Raw& raw) {
  app.add_option("--nproc-per-node", raw.per_node, "workers on each host, or gpu: one on each GPU; default: its slots")
      ->type_name("N")
      ->group(kHosts);
  app.add_flag("--oversubscribe", raw.oversubscribe,
               "more workers than slots, spread over hosts by their slots; with --bind-to: than cores")
      ->group(kHosts);
  app.add_option("--bind-to", raw.bind_to, "core: each worker to its even share of the host's cores; numa: to one node")
      ->type_name("core|numa|none")
      ->transform(one_of({"core", "numa", "none"}))
      ->group(kHosts);
}

void describe_environment(CLI::App& app, Raw& raw) {
  app.add_option("-x", raw.exports,
                 "environment for the workers: NAME, NAME=VALUE, 'GLOB*'; RANK and the like stay drun's")
      ->type_name("NAME[=V]")
      ->allow_extra_args(false)
      ->group(kEnvironment);
  app.add_option("--env-file", raw.env_file, "NAME=VALUE lines for the workers' environment")
      ->type_name("FILE")
      ->group(kEnvironment);
  app.add_option("--env", raw.env_mode, "all: pass on drun's environment; none: only -x and --env-file")
      ->type_name("all|none")
      ->transform(one_of({"all", "none"}))
      ->group(kEnvironment);
  app.add_option("--wdir", raw.wdir, "working directory of the workers; default: this one")
      ->type_name("DIR")
      ->group(kEnvironment);
  app.add_option("--mpi", raw.mpi, "none: start a program of MPI all the same, each worker as a world of one rank")
      ->type_name("refuse|none")
      ->transform(one_of({"refuse", "none"}))
      ->group(kEnvironment);
  app.add_option("--compat", raw.compat, "horovod: drun's package of that name; real-horovod: the one of their host")
      ->type_name("horovod|real-horovod")
      ->transform(one_of({"horovod", "real-horovod"}))
      ->group(kEnvironment);
}

void describe_output(CLI::App& app, Raw& raw) {
  app.add_option("--stdin", raw.stdin_to, "who gets drun's standard input")->type_name("RANK|all|none")->group(kOutput);
  app.add_option("--output-filename", raw.output_directory,
                 "also write each rank's output to DIR/rank.N/stdout and stderr")
      ->type_name("DIR")
      ->group(kOutput);
  app.add_flag("--tag-output{rank}", raw.tag,
               "start each line with [rank], also for one worker; host: with [host:rank]")
      ->type_name("rank|host")
      ->transform(one_of({"rank", "host"}))
      ->group(kOutput);
  app.add_flag("--no-tag-output", raw.no_tag, "never do so")->group(kOutput);
  app.add_flag("--timestamp-output", raw.timestamp, "start each line with the time at which its host read it")
      ->group(kOutput);
  app.add_flag("--merge-stderr-to-stdout", raw.merges_stderr,
               "write the workers' stderr to stdout, also in the files of --output-filename")
      ->group(kOutput);
  app.add_option("--ranks", raw.ranks, "show only these ranks' output; files get all")
      ->type_name("0,8-15")
      ->group(kOutput);
  app.add_flag("--pty", raw.pty, "give each worker a terminal (for programs that buffer otherwise)")->group(kOutput);
}

void describe_time_limits(CLI::App& app, Raw& raw) {
  app.add_option("--timeout", raw.timeout, "seconds until the job is ended; 0: never")
      ->type_name("S")
      ->capture_default_str()
      ->group(kTimeLimits);
  app.add_option("--stack-timeout", raw.stack_timeout, "seconds that --timeout spends on stacks; 0: none")
      ->type_name("S")
      ->capture_default_str()
      ->group(kTimeLimits);
  app.add_option("--stall-timeout", raw.stall_timeout,
                 "warn of a collective without progress after S seconds; 0: never")
      ->type_name("S")
      ->capture_default_str()
      ->group(kTimeLimits);
  app.add_option("--grace", raw.grace, "seconds between TERM and KILL")
      ->type_name("S")
      ->capture_default_str()
      ->group(kTimeLimits);
  app.add_option("--heartbeat-timeout", raw.heartbeat_timeout, "seconds of silence after which a host is given up")
      ->type_name("S")
      ->capture_default_str()
      ->group(kTimeLimits);
}

void describe_reports(CLI::App& app, Raw& raw) {
  app.add_option("--report", raw.report_file, "write there how the job ended, as JSON")
      ->type_name("FILE")
      ->group(kReports);
  app.add_option("--events", raw.events, "write what happens as JSON lines")->type_name("FILE")->group(kReports);
  app.add_option("--timeline", raw.timeline,
                 "write every collective of every rank there, for Perfetto; default: $DRUN_TIMELINE")
      ->type_name("FILE")
      ->group(kReports);
}

// The order is that of the help in each group.
void describe(CLI::App& app, Raw& raw) {
  app.set_help_flag("-h,--help", "print this help")->group(kOther);
  describe_workers(app, raw);
  describe_slots(app, raw);
  describe_hosts(app, raw);
  describe_interfaces(app, raw);
  describe_cache(app, raw);
  describe_environment(app, raw);
  describe_output(app, raw);
  describe_time_limits(app, raw);
  describe_connection(app, raw);
  app.add_option("--check", raw.check, "before the start: what drun check does; a host that is not ready ends it there")
      ->type_name("quick|default|full")
      ->check(CLI::IsMember({"quick", "default", "full"}))
      ->group(kNetwork);
  app.add_flag("--dry-run", raw.dry_run, "show what would be started where, and start nothing")->group(kReports);
  app.add_option("--explain-env", raw.explained_rank,
                 "show the environment that this worker would get, and start nothing")
      ->type_name("RANK")
      ->group(kReports);
  app.add_flag("--json", raw.json, "with --dry-run or --explain-env: as JSON")->group(kReports);
  describe_log(app, raw);
  describe_reports(app, raw);
  app.add_flag("--version", raw.version, "print the version")->group(kOther);
  app.add_flag("--check-build", raw.check_build, "print what this drun was built with")->group(kOther);
  describe_config(app, raw);
}

std::string usage(const CLI::App& app) {
  std::string subcommands;
  for (const auto& [name, summary] : kSubcommands) {
    subcommands += std::string("       drun ") + name + " [options]     " + summary + ": drun " + name + " --help\n";
  }
  return std::string("drun ") + kSummary + ".\n" +
         "\n"
         "usage: drun [run] [options] [--] COMMAND [ARG...]\n" +
         subcommands +
         "       drun horovodrun ...      the command line of horovodrun: docs/migrating.md\n"
         "\n"
         "  drun -np 4 ./train                                      four workers here: no ssh, no GPU needed\n"
         "  drun -np 2 -H localhost:1,host1:1 -p 12345 ./train      two machines, sshd on port 12345\n"
         "  drun --hostfile hosts python3 train.py                  all slots of a hostfile\n"
         "  drun -np 16 -H gpu[1-2]:8 -x NCCL_DEBUG=INFO python3 train.py\n"
         "  salloc -N 2 --ntasks-per-node=8 drun python3 train.py   the hosts of a batch job: docs/schedulers.md\n"
         "\n" +
         option_sections(option_rows(app)) +
         "\nThe exit status is that of the worker that failed first (128+n after signal n); 2: bad usage; 68: a host\n"
         "can't be reached; 75: a deadline passed; 126, 127: the command can't be executed, does not exist;\n"
         "130: Ctrl-C. Each worker finds RANK, LOCAL_RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT and more in its\n"
         "environment: docs/environment.md.\n";
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

// --nproc-per-node gpu. Refuses what needs the number of workers before the hosts are connected, or changes it after.
Result<void> choose_slot_per_gpu(const Raw& raw, const launcher::Environment& own_env, launcher::JobOptions& job) {
  const bool sets_devices = launcher::set_by_user(job.env, own_env, "CUDA_VISIBLE_DEVICES");
  const std::pair<bool, const char*> refused[] = {{raw.dry_run, "--dry-run"},
                                                  {raw.explained_rank.has_value(), "--explain-env"},
                                                  {!raw.ranks.empty(), "--ranks"},
                                                  {raw.oversubscribe, "--oversubscribe"},
                                                  {parse_number(raw.stdin_to).value_or(0) > 0, "--stdin"},
                                                  {sets_devices, "-x CUDA_VISIBLE_DEVICES"}};
  for (const auto& [is_given, option] : refused) {
    if (!is_given) continue;
    return fail(usage_error(option,
                            "not with --nproc-per-node gpu: a host says how many GPUs it shows when it is connected",
                            "--nproc-per-node with the number of GPUs"));
  }
  job.slot_per_gpu = true;
  return {};
}

// --nproc-per-node and --oversubscribe. Fewer workers than slots are a choice, more only with --oversubscribe.
Result<void> fill_slots(const Raw& raw, const launcher::Environment& own_env, launcher::JobOptions& job) {
  if (raw.per_node == "gpu") return choose_slot_per_gpu(raw, own_env, job);
  if (!raw.per_node.empty()) {
    const auto n = parse_number(raw.per_node);
    if (!n || *n == 0 || *n > static_cast<std::uint64_t>(launcher::kMaxSlots)) {
      return fail(usage_error("--nproc-per-node", "'" + raw.per_node + "' is not a number from 1 to 1024",
                              "--nproc-per-node 8, or --nproc-per-node gpu for a worker on each GPU"));
    }
    for (auto& host : job.hosts) {
      if (host.slots_given && host.slots < static_cast<int>(*n) && !raw.oversubscribe) {
        return fail(usage_error("--nproc-per-node",
                                host.name + " has " + plural(static_cast<std::size_t>(host.slots), "slot") +
                                    " in the list of hosts, fewer than " + raw.per_node,
                                "--oversubscribe to start more workers than slots"));
      }
      if (host.max_slots > 0 && host.max_slots < static_cast<int>(*n)) {
        return fail(usage_error("--nproc-per-node", host.name + " has max_slots=" + std::to_string(host.max_slots),
                                "--nproc-per-node " + std::to_string(host.max_slots)));
      }
      host.slots = static_cast<int>(*n);
    }
    const auto room = static_cast<std::uint64_t>(job.hosts.size()) * *n;
    if (static_cast<std::uint64_t>(job.np) > room && !raw.oversubscribe) {
      return fail(usage_error("-np " + raw.np,
                              "only " + std::to_string(room) + " workers by --nproc-per-node " + raw.per_node + " on " +
                                  plural(job.hosts.size(), "host"),
                              "-np " + std::to_string(room) + ", or more hosts"));
    }
  }
  if (raw.oversubscribe) job.hosts = launcher::with_slots_for(std::move(job.hosts), job.np);
  return {};
}

Result<void> fill_run(const Raw& raw, const std::vector<std::string>& command, const launcher::Environment& own_env,
                      Options& out) {
  launcher::JobOptions& job = out.job;
  if (auto ok = check_command_words(command, raw, !raw.env_file.empty(), own_env); !ok) return ok;
  job.command = command;
  job.env.inherit = raw.env_mode == "all";
  if (!raw.env_file.empty()) {
    auto text = read_file(raw.env_file);
    if (!text) return fail(usage_error("--env-file", text.error().cause));
    auto file = launcher::parse_env_file(*text, raw.env_file);
    if (!file) return fail(std::move(file.error()));
    job.env.file = std::move(*file);
  }
  job.env.real_horovod = raw.compat == "real-horovod";
  if (raw.compat == "horovod") {
    auto folder = find_compat_folder(program_folder());
    if (!folder) return fail(std::move(folder.error()));
    job.env.compat_folder = std::move(*folder);
  }
  if (auto ok = fill_job(raw, own_env, job); !ok) return ok;
  if (auto ok = fill_slots(raw, own_env, job); !ok) return ok;
  const bool is_of_home = raw.wdir == "~" || starts_with(raw.wdir, "~/");
  if (is_of_home && ::access(raw.wdir.c_str(), F_OK) != 0) {
    return fail(usage_error("--wdir", "'" + raw.wdir + "': a '~' in quotes stays what it is",
                            "--wdir \"$HOME" + raw.wdir.substr(1) + "\""));
  }
  job.working_directory = raw.wdir.empty() ? current_directory() : absolute(raw.wdir);
  if (auto ok = choose_stdin(raw.stdin_to, job); !ok) return ok;
  job.output.directory = absolute(raw.output_directory);
  job.output.timestamp = raw.timestamp;
  job.output.merges_stderr = raw.merges_stderr;
  job.pty = raw.pty;
  job.allows_mpi = raw.mpi == "none";
  if (raw.bind_to == "core") job.bind_to = control::BindTo::kCore;
  if (raw.bind_to == "numa") job.bind_to = control::BindTo::kNuma;
  job.shares_cores = raw.oversubscribe;
  const auto stacks = seconds("--stack-timeout", raw.stack_timeout, true);
  const auto stall = seconds("--stall-timeout", raw.stall_timeout, true);
  const auto grace = seconds("--grace", raw.grace, true);
  const auto heartbeat = seconds("--heartbeat-timeout", raw.heartbeat_timeout, false);
  for (const auto* t : {&stacks, &stall, &grace, &heartbeat}) {
    if (!*t) return fail(t->error());
  }
  job.stack_timeout = *stacks;
  job.stall_timeout = *stall;
  if (raw.events == "-") {
    return fail(
        usage_error("--events", "stdout belongs to the workers", "--events events.jsonl, or --events /dev/stderr"));
  }
  job.events_file = absolute(raw.events);
  if (raw.check == "quick") out.check = check::CheckDepth::kQuick;
  if (raw.check == "default") out.check = check::CheckDepth::kDefault;
  if (raw.check == "full") out.check = check::CheckDepth::kFull;
  const auto named = own_env.find("DRUN_TIMELINE");
  const std::string timeline = raw.timeline.empty() && named != own_env.end() ? named->second : raw.timeline;
  if (timeline == "-") {
    return fail(usage_error(raw.timeline.empty() ? "DRUN_TIMELINE" : "--timeline", "stdout belongs to the workers",
                            "a file, such as timeline.json"));
  }
  job.timeline_file = absolute(timeline);
  job.grace = *grace;
  job.heartbeat_timeout = std::max(*heartbeat, std::chrono::milliseconds(1000));
  // Places once to see if there is more than one worker; the job itself places again with its own findings.
  const auto placed = launcher::place(job.hosts, job.slot_per_gpu ? 0 : job.np);
  if (!placed) return fail(placed.error());
  if (job.stdin_mode == launcher::StdinMode::kRank && job.stdin_rank >= placed->size) {
    return fail(usage_error("--stdin", "there is no rank " + std::to_string(job.stdin_rank) + " among " +
                                           plural(static_cast<std::size_t>(placed->size), "worker")));
  }
  using launcher::TagStyle;
  if (placed->size > 1 || job.slot_per_gpu || !raw.tag.empty())
    job.output.tag = raw.tag == "host" ? TagStyle::kHost : TagStyle::kRank;
  if (raw.no_tag) job.output.tag = TagStyle::kNone;
  if (!raw.ranks.empty()) {
    auto shown = launcher::parse_rank_list(raw.ranks, placed->size, "--ranks");
    if (!shown) return fail(std::move(shown.error()));
    job.output.shown = std::move(*shown);
  }
  return {};
}

}  // namespace

std::vector<OptionRow> run_rows() {
  CLI::App app;
  Raw raw;
  describe(app, raw);
  return option_rows(app);
}

Result<std::vector<ConfigLine>> given_run_options(const std::vector<std::string>& args) {
  CLI::App app;
  Raw raw;
  describe(app, raw);
  if (const auto parsed = parse_words(app, args, "drun run"); !parsed) return fail(parsed.error());
  return given_options(app, "");
}

Result<Options> parse_options(std::vector<std::string> args, const launcher::Environment& own_env) {
  CLI::App app;
  Raw raw;
  describe(app, raw);
  const ValueOptions with_value = value_options(app);
  if (auto misread = misread_error(app, args, with_value, "drun --help")) return fail(std::move(*misread));
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
    return fail(parse_error(app, e, parts.options, "drun --help"));
  }
  if (raw.version || raw.check_build) {
    out.action = raw.version ? Action::kVersion : Action::kCheckBuild;
    return out;
  }
  auto config = read_config(app, "run", raw, own_env);
  if (!config) return fail(std::move(config.error()));
  out.dry_run = raw.dry_run;
  out.explained_rank = raw.explained_rank;
  out.json = raw.json;
  out.env_file = raw.env_file;
  out.log_level = log_level(raw);
  out.log_file = raw.log_file;
  out.report_file = absolute(raw.report_file);
  if (auto ok = fill_run(raw, parts.command, own_env, out); !ok) return fail(config->explain(std::move(ok.error())));
  out.config = std::move(config->sources);
  return out;
}

}  // namespace drun::cli
