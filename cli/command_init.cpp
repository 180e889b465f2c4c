#include "cli/command_init.h"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <ctime>
#include <filesystem>

#include "base/error_id.h"
#include "base/exit_status.h"
#include "base/fd.h"
#include "base/text.h"
#include "cli/check_report/report.h"
#include "cli/config/config_files.h"
#include "cli/config/host_groups.h"
#include "cli/config/new_config.h"
#include "cli/help.h"
#include "cli/horovodrun.h"
#include "cli/job_options.h"
#include "cli/options.h"
#include "cli/paths.h"
#include "cli/usage.h"
#include "cli/whole_file.h"

namespace drun::cli {

namespace {

// Options as CLI11 fills them in, unchecked.
struct Raw : RawJobOptions {
  std::string from, output;
  bool force = false;
};

void describe(CLI::App& app, Raw& raw) {
  app.set_help_flag("-h,--help", "print this help")->group(kOther);
  describe_hosts(app, raw);
  app.get_option("--exclude")->description("leave out these hosts: b,n[03-05]");
  app.get_option("--hosts")->description("a:2,me@b,n[01-16]:8,[fd00::2]:2,c:gpus=0,2");
  describe_interfaces(app, raw);
  app.add_option("--from", raw.from, "also take the options of this YAML file of horovodrun --config-file")
      ->type_name("FILE");
  app.add_option("--output", raw.output, "write there; default: drun.toml")->type_name("FILE");
  app.add_flag("--force", raw.force, "replace a file that is there, and write it also if the hosts are not ready");
  describe_connection(app, raw);
  describe_log(app, raw);
}

std::string usage(const CLI::App& app) {
  return "drun init writes a drun.toml, so that `drun COMMAND` in this directory runs on these hosts. It checks them\n"
         "first, as `drun check --quick` does, and prints the report.\n"
         "\n"
         "usage: drun init [options]\n"
         "\n"
         "  drun init -H localhost:1,host1:1 -p 12345\n"
         "  drun init -H gpu[1-4]                             a slot for each GPU that a host has\n"
         "  drun init --from horovod.yaml                     a file of horovodrun --config-file, as TOML\n"
         "\n"
         "The file gets the hosts with their slots, the network that the check found, and the options that are given\n"
         "here.\n"
         "\n" +
         option_sections(option_rows(app)) +
         "\nThe exit status is 0: the file was written; 1: the hosts are not ready; 2: bad usage; 68: a host can't be\n"
         "reached, or there is no common network; 75: a deadline passed; 130: Ctrl-C.\n";
}

// True if drun finds the file by itself, and not as the user's own.
bool is_found(const std::string& path, const launcher::Environment& own_env) {
  namespace fs = std::filesystem;
  if (fs::path(path).filename() != kConfigName) return false;
  const std::string users = user_config(own_env);
  std::error_code ignored;
  return users.empty() || fs::weakly_canonical(path, ignored) != fs::weakly_canonical(users, ignored);
}

// The lines of a file of horovodrun, and what was left out of it.
Result<void> add_horovodrun(const std::string& path, InitCommand& out) {
  const auto text = read_file(path, kMaxConfigBytes);
  if (!text) return fail(usage_error("--from", text.error().message()));
  const auto settings = parse_horovodrun_file(*text, path);
  if (!settings) return fail(Error(settings.error()).with_id(error_id::kConfigFile));
  const HorovodFile file = translate_settings(*settings);
  auto lines = given_run_options(file.args);
  if (!lines) return fail(std::move(lines.error()).with_context("from " + path));
  out.lines.insert(out.lines.end(), lines->begin(), lines->end());
  if (file.left_out.empty()) return {};
  out.last_lines.push_back("Left out of " + path + ":");
  for (const auto& [key, reason] : file.left_out) out.last_lines.push_back("  " + key + ": " + reason);
  return {};
}

Result<void> check_output(const InitCommand& command) {
  if (command.output.empty() || command.output == "-") {
    return fail(usage_error("--output", "is not written to standard output", "--output /dev/stdout"));
  }
  std::error_code ignored;
  if (!command.force && std::filesystem::is_regular_file(command.output, ignored)) {
    return fail(usage_error("--output", shell_quote(command.output) + " is there already",
                            "--force to replace it, or --output FILE"));
  }
  return check_writable("--output", command.output);
}

Result<void> fill_init(const CLI::App& app, const Raw& raw, const launcher::Environment& own_env, InitCommand& out) {
  out.has_hostfile = !raw.hostfile.empty();
  out.has_networks = app.count("--network-interfaces") > 0;
  out.force = raw.force;
  if (app.count("--output") > 0) out.output = raw.output;
  out.log_level = log_level(raw);
  out.log_file = raw.log_file;
  if (raw.hosts.empty() && !out.has_hostfile && raw.from.empty()) {
    return fail(usage_error("-H", "the hosts are missing", "drun init -H host1:8,host2:8"));
  }
  for (const auto& [option, list] : {std::pair{"-H", &raw.hosts}, {"--exclude", &raw.exclude}}) {
    const auto groups = groups_in(*list);
    if (groups.empty()) continue;
    return fail(usage_error(option, "drun init reads no drun.toml, so it does not know the group @" + groups.front(),
                            "drun init -H host1:8,host2:8"));
  }
  if (raw.hosts.empty() && !raw.exclude.empty()) {
    const std::string cause = out.has_hostfile ? "the drun.toml will name the hostfile, and its hosts stay there"
                                               : "there is no -H from which it could leave out hosts";
    return fail(usage_error("--exclude", cause, "drun init -H host1:8,host2:8 --exclude host2"));
  }
  if (auto ok = check_launch_agent(raw, typed_ssh_option(app)); !ok) return ok;
  if (auto ok = check_output(out); !ok) return ok;
  out.is_found = is_found(out.output, own_env);
  const std::string folder = std::filesystem::path(absolute(out.output)).parent_path().string();
  out.lines = given_options(app, folder == current_directory() ? "" : current_directory());
  if (!raw.from.empty()) {
    if (auto ok = add_horovodrun(raw.from, out); !ok) return ok;
  }
  if (raw.hosts.empty() && !out.has_hostfile) return {};
  auto hosts = chosen_hosts(raw, 1, own_env);
  if (!hosts) return fail(std::move(hosts.error()));
  auto connect = connect_options(raw);
  if (!connect) return fail(std::move(connect.error()));
  out.check.hosts = std::move(*hosts);
  out.check.connect = std::move(*connect);
  out.check.interfaces = raw.interfaces;
  out.check.depth = check::CheckDepth::kQuick;
  out.check.working_directory = current_directory();
  return {};
}

std::string today() {
  const std::time_t now = std::time(nullptr);
  std::tm local{};
  char out[16] = "";
  if (::localtime_r(&now, &local) != nullptr) std::strftime(out, sizeof out, "%Y-%m-%d", &local);
  return out;
}

// Writes the file and says what it is good for.
Result<void> write_config(const InitCommand& command, const std::vector<std::string>& head,
                          std::vector<ConfigLine> lines, const std::vector<Host>& hosts, Printer& printer) {
  std::vector<std::string> disabled;
  std::string text = config_file_text(head, lines, command.is_found, disabled);
  if (!command.last_lines.empty()) text += "\n";
  for (const auto& line : command.last_lines) text += "# " + line + "\n";
  if (auto written = write_whole(command.output, text); !written) {
    return fail(std::move(written.error()).with_subject("--output"));
  }
  int n_workers = 0;
  for (const auto& host : hosts) n_workers += host.slots;
  const bool is_here = std::filesystem::path(absolute(command.output)).parent_path() == current_directory();
  const std::string typed =
      command.is_found && is_here ? "drun COMMAND" : "drun --config " + shell_quote(command.output) + " COMMAND";
  printer.note(command.output + " is written" +
               (hosts.empty() ? std::string("")
                              : "; `" + typed + "` starts " + plural(static_cast<std::size_t>(n_workers), "worker") +
                                    " on " + plural(hosts.size(), "host")));
  if (!disabled.empty()) {
    printer.note(command.output + ": a comment there, because drun takes it only from your own file or by --config: " +
                 join(disabled, ", "));
  }
  return {};
}

int print_error(const Error& error, Printer& printer) {
  printer.error(error);
  return exit_status(error.code);
}

}  // namespace

std::vector<OptionRow> init_rows() {
  CLI::App app;
  Raw raw;
  describe(app, raw);
  return option_rows(app);
}

Result<InitCommand> parse_init(const std::vector<std::string>& args, const launcher::Environment& own_env) {
  CLI::App app;
  Raw raw;
  describe(app, raw);
  InitCommand out;
  const auto parsed = parse_words(app, args, "drun init");
  if (!parsed) return fail(parsed.error());
  if (!*parsed) {
    out.help = usage(app);
    return out;
  }
  if (auto ok = fill_init(app, raw, own_env, out); !ok) return fail(std::move(ok.error()));
  return out;
}

int command_init(const std::vector<std::string>& args, const Checker& checker, Printer& printer,
                 const launcher::Environment& own_env) {
  auto command = parse_init(args, own_env);
  if (!command) return print_error(command.error(), printer);
  if (const auto status = begin(*command, {}, printer)) return *status;
  std::vector<std::string> head = {"Written by `drun init` on " + today() + "; man drun.toml has the keys."};
  std::vector<ConfigLine> lines;
  std::vector<Host> hosts;
  int status = kExitOk;
  if (!command->check.hosts.empty()) {
    const check::CheckResult result = checker.check(command->check, printer);
    status = checker.status(result, false);
    if (result.network_error && result.network_error->code == Errc::kUsage) {
      return print_error(*result.network_error, printer);
    }
    if (const auto failed = write_output(check_text(result, style_of_stdout()), printer)) return *failed;
    if (status != kExitOk && !command->force) {
      printer.error(Error(Errc::kUnreachable, command->output, "not written: the hosts are not ready")
                        .with_hint("--force writes it all the same")
                        .with_id(error_id::kNotReady));
      return status;
    }
    hosts = command->check.hosts;
    if (!command->has_hostfile) hosts = with_gpu_slots(std::move(hosts), result);
    head.push_back(check_remark(result));
    if (auto networks = networks_line(result); networks && !command->has_networks)
      lines.push_back(std::move(*networks));
    if (!command->has_hostfile) lines.push_back(hosts_line(hosts, result));
  }
  lines.insert(lines.begin(), command->lines.begin(), command->lines.end());
  if (auto ok = write_config(*command, head, std::move(lines), hosts, printer); !ok) {
    return print_error(ok.error(), printer);
  }
  return status;
}

}  // namespace drun::cli
