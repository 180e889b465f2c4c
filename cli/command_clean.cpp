#include "cli/command_clean.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>

#include "base/exit_status.h"
#include "base/fd.h"
#include "base/text.h"
#include "cli/clean_report.h"
#include "cli/config/config_files.h"
#include "cli/help.h"
#include "cli/host_options.h"
#include "cli/usage.h"

namespace drun::cli {

namespace {

struct Raw : RawHostOptions {
  std::string job;
  bool yes = false, all_users = false, json = false;
  double grace = 5;
};

void describe(CLI::App& app, Raw& raw) {
  app.set_help_flag("-h,--help", "print this help")->group(kOther);
  describe_hosts(app, raw);
  app.add_option("--job", raw.job, "only this job; with --yes it is ended also if it is running")->type_name("ID");
  app.add_flag("--yes", raw.yes, "end what was found; without it, it is only shown");
  app.add_flag("--all-users", raw.all_users, "on hosts where you are root: of all users");
  app.add_option("--grace", raw.grace, "seconds between TERM and KILL")
      ->type_name("S")
      ->capture_default_str()
      ->group(kTimeLimits);
  app.add_flag("--json", raw.json, "print it as JSON")->group(kReports);
  describe_connection(app, raw);
  describe_log(app, raw);
  describe_config(app, raw);
}

std::string usage(const CLI::App& app) {
  return "drun clean shows what earlier jobs left on hosts, and ends it with --yes.\n"
         "\n"
         "usage: drun clean [options]\n"
         "\n"
         "  drun clean -H localhost,host1 -p 12345            list\n"
         "  drun clean -H localhost,host1 -p 12345 --yes      and end it\n"
         "\n"
         "Left over is a process of yours that carries the mark of a job (DRUN_JOB_ID in its environment, its cgroup,\n"
         "or a parent that does), and no agent watches over that job there. What belongs to a running job is listed, "
         "and\n"
         "only ended with --job ID --yes. Process names are never used. Slots of hosts don't matter.\n"
         "\n" +
         option_sections(option_rows(app)) +
         "\nThe exit status is 0 if nothing is left (any more), 1 if something is, 2: bad usage; 68: a host can't be "
         "reached.\n";
}

// Columns of the terminal; 0: not a terminal.
std::size_t terminal_width() {
  winsize size{};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0) return 0;
  return size.ws_col;
}

Result<void> fill_clean(const CLI::App& app, const Raw& raw, const launcher::Environment& own_env, CleanCommand& out) {
  if (raw.job.find_first_of(" \t\n/") != std::string::npos || (app.count("--job") > 0 && raw.job.empty())) {
    return fail(usage_error("--job", "'" + raw.job + "' is not the id of a job", "drun clean   (lists them)"));
  }
  auto hosts = chosen_hosts(raw, 1, own_env);
  if (!hosts) return fail(std::move(hosts.error()));
  auto connect = connect_options(raw);
  if (!connect) return fail(std::move(connect.error()));
  const auto grace = seconds("--grace", raw.grace, true);
  if (!grace) return fail(grace.error());
  out.clean.hosts = std::move(*hosts);
  out.clean.connect = std::move(*connect);
  out.clean.order.job_id = raw.job;
  out.clean.order.end = raw.yes;
  out.clean.order.all_users = raw.all_users;
  out.clean.order.grace_ms =
      static_cast<std::uint32_t>(std::min(*grace, std::chrono::milliseconds(std::chrono::hours(1))).count());
  out.json = raw.json;
  out.log_level = log_level(raw);
  out.log_file = raw.log_file;
  return {};
}

}  // namespace

std::vector<OptionRow> clean_rows() {
  CLI::App app;
  Raw raw;
  describe(app, raw);
  return option_rows(app);
}

Result<CleanCommand> parse_clean(const std::vector<std::string>& args, const launcher::Environment& own_env) {
  CLI::App app;
  Raw raw;
  describe(app, raw);
  CleanCommand out;
  const auto parsed = parse_words(app, args, "drun clean");
  if (!parsed) return fail(parsed.error());
  if (!*parsed) {
    out.help = usage(app);
    return out;
  }
  auto config = read_config(app, "clean", raw, own_env);
  if (!config) return fail(std::move(config.error()));
  if (auto ok = fill_clean(app, raw, own_env, out); !ok) return fail(config->explain(std::move(ok.error())));
  out.config = std::move(config->sources);
  return out;
}

int command_clean(const std::vector<std::string>& args, Printer& printer, const launcher::Environment& own_env) {
  auto command = parse_clean(args, own_env);
  if (!command) {
    printer.error(command.error());
    return exit_status(command.error().code);
  }
  if (const auto status = begin(*command, command->clean.hosts, printer)) return *status;
  const bool end = command->clean.order.end;
  const launcher::CleanResult result = launcher::clean_hosts(std::move(command->clean), printer);
  for (const auto& error : result.errors) printer.error(error);
  std::string text = command->json ? clean_json(result) : clean_table(result, terminal_width());
  const bool left = anything_left(result);
  if (left && !end && !command->json) {
    text += "to end it: drun clean";
    for (const auto& arg : args) text += " " + shell_quote(arg);
    text += " --yes\n";
  }
  if (const auto failed = write_output(text, printer)) return *failed;
  if (!result.errors.empty()) return exit_status(result.errors.front().code);
  return left ? kExitLeft : kExitOk;
}

}  // namespace drun::cli
