#include "cli/subcommand.h"

#include <unistd.h>

#include <CLI/CLI.hpp>

#include "base/exit_status.h"
#include "base/fd.h"
#include "cli/argv.h"
#include "cli/usage.h"
#include "launcher/plan/allocation.h"

namespace drun::cli {

Result<bool> parse_words(CLI::App& app, const std::vector<std::string>& args, const std::string& name) {
  const ValueOptions with_value = value_options(app);
  if (auto misread = misread_error(app, args, with_value, name + " --help")) return fail(std::move(*misread));
  const auto rewritten = rewrite_argv(args, with_value);
  std::vector<std::string> reversed(rewritten.rbegin(), rewritten.rend());
  try {
    app.parse(reversed);
  } catch (const CLI::CallForHelp&) {
    return false;
  } catch (const CLI::ParseError& e) {
    return fail(parse_error(app, e, rewritten, name + " --help"));
  }
  return true;
}

void say_sources(const ConfigSources& config, const std::vector<Host>& hosts, Printer& printer) {
  if (const std::string summary = config.summary(); !summary.empty()) log::info(summary);
  std::string note = launcher::allocation_note(hosts);
  if (note.empty()) note = config.hosts_note();
  if (!note.empty()) printer.note(note);
}

std::optional<int> begin(const Subcommand& command, const std::vector<Host>& hosts, Printer& printer) {
  if (!command.help.empty()) {
    write_all(STDOUT_FILENO, command.help);
    return kExitOk;
  }
  if (auto ok = printer.start_log(command.log_level, command.log_file); !ok) {
    printer.error(ok.error());
    return kExitUsage;
  }
  say_sources(command.config, hosts, printer);
  return std::nullopt;
}

std::optional<int> write_output(const std::string& text, Printer& printer) {
  printer.flush();
  auto written = write_all(STDOUT_FILENO, text);
  if (written) return std::nullopt;
  const Error error = std::move(written.error()).with_subject("stdout");
  if (!reader_left(error)) printer.error(error);
  return output_status(error);
}

}  // namespace drun::cli
