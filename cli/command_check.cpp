#include "cli/command_check.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <map>

#include "base/exit_status.h"
#include "base/fd.h"
#include "base/terminal.h"
#include "base/text.h"
#include "cli/argv.h"
#include "cli/check_report/report.h"
#include "cli/config/config_files.h"
#include "cli/help.h"
#include "cli/job_options.h"
#include "cli/paths.h"
#include "cli/quantity.h"
#include "cli/usage.h"
#include "cli/whole_file.h"

namespace drun::cli {

namespace {

constexpr std::size_t kMinWidth = 40, kDefaultWidth = 80, kMaxWidth = 120;

// Options as CLI11 fills them in, unchecked.
struct Raw : RawJobOptions {
  bool quick = false, full = false, json = false, strict = false;
  std::string max_rate, gradient_size, model_params, dtype, step_time, purpose;
  std::string baseline, save_baseline, html;
};

void describe(CLI::App& app, Raw& raw) {
  app.set_help_flag("-h,--help", "print this help")->group(kOther);
  describe_hosts(app, raw);
  describe_interfaces(app, raw);
  app.add_flag("--quick", raw.quick, "take 5 seconds, to 32 hosts; default: 15, and up to 30 if something looks wrong");
  app.add_flag("--full", raw.full, "in 60 to 120 seconds: longer measurements");
  app.add_option("--for", raw.purpose, "what will run; default: all, the worst counts")
      ->type_name("nccl|torch|libdrun|mpi");
  app.add_option("--max-rate", raw.max_rate, "of what is measured, per host and direction: 1gbit, 100mbit, 125MB/s")
      ->type_name("RATE");
  app.add_option("--gradient-size", raw.gradient_size, "the allreduce whose time is predicted; default: 100MB")
      ->type_name("SIZE");
  app.add_option("--model-params", raw.model_params, "the same as a number of parameters: 110M, 7B")->type_name("N");
  app.add_option("--dtype", raw.dtype, "with --model-params, of the gradients: f16, bf16, f32, ...; default: f32")
      ->type_name("TYPE");
  app.add_option("--step-time", raw.step_time, "of one training step on one host: 300ms; predicts the efficiency")
      ->type_name("TIME");
  app.add_option("--baseline", raw.baseline, "compare with what --save-baseline wrote")->type_name("FILE");
  app.add_option("--save-baseline", raw.save_baseline, "write there what is normal on these hosts")->type_name("FILE");
  app.add_flag("--json", raw.json, "JSON in place of the text")->group(kReports);
  app.add_option("--html", raw.html, "also write a page with heat maps and plots")->type_name("FILE");
  app.add_flag("--strict", raw.strict, "the exit status is 1 also for warnings");
  app.add_option("--timeout", raw.timeout, "seconds after which the check ends with what it has; 0: never")
      ->type_name("S")
      ->capture_default_str()
      ->group(kTimeLimits);
  describe_connection(app, raw);
  describe_log(app, raw);
  describe_config(app, raw);
}

std::string usage(const CLI::App& app) {
  return "drun check says whether a job could run on these hosts, over which network interfaces, how fast their links\n"
         "are, what an allreduce would cost, and what is wrong. No job is started; nothing is needed there.\n"
         "\n"
         "usage: drun check [options] [--] [COMMAND]\n"
         "\n"
         "  drun check -H localhost:1,host1:1 -p 12345\n"
         "  drun check --hostfile hosts --model-params 110M --dtype f16 --step-time 300ms\n"
         "  drun check -H gpu[1-4]:8 --full --html check.html -- python3\n"
         "\n"
         "With a COMMAND, the hosts are also asked whether they have the same one. docs/check.md explains each "
         "finding.\n"
         "\n" +
         option_sections(option_rows(app)) +
         "\nThe exit status is 0: ready, 1: not ready, or warnings with --strict; 2: bad usage; 68: a host can't be\n"
         "reached, or there is no common network; 75: a deadline passed; 130: Ctrl-C.\n";
}

template <typename T, typename Parse>
Result<void> take(Parse parse, const char* option, const std::string& text, T& into) {
  const auto value = parse(text);
  if (!value) {
    Error error = value.error();
    error.hint = std::string(option) + " " + error.hint;
    return fail(std::move(error).with_subject(option));
  }
  into = *value;
  return {};
}

Result<check::Purpose> parse_purpose(const std::string& text) {
  using check::Purpose;
  const std::map<std::string, Purpose> known = {
      {"nccl", Purpose::kNccl}, {"torch", Purpose::kTorch}, {"libdrun", Purpose::kLibdrun}, {"mpi", Purpose::kMpi}};
  const auto at = known.find(text);
  if (at != known.end()) return at->second;
  return fail(Error(Errc::kUsage, "'" + text + "' is none of nccl, torch, libdrun and mpi").with_hint("torch"));
}

Result<void> choose_gradients(const CLI::App& app, const Raw& raw, check::CheckOptions& check) {
  const bool sized = app.count("--gradient-size") > 0, counted = app.count("--model-params") > 0;
  if (sized && counted) {
    return fail(usage_error("--gradient-size", "can't be used together with --model-params", "one of them is enough"));
  }
  if (app.count("--dtype") > 0 && !counted) {
    return fail(usage_error("--dtype", "is the type of the parameters of --model-params, which is not given",
                            "--model-params 110M --dtype f16"));
  }
  if (sized) {
    std::size_t n_bytes = 0;
    if (auto ok = take(parse_bytes, "--gradient-size", raw.gradient_size, n_bytes); !ok) return ok;
    check.gradient_bytes = n_bytes;
  }
  if (counted) {
    std::uint64_t n_parameters = 0;
    std::size_t element = 4;
    if (auto ok = take(parse_count, "--model-params", raw.model_params, n_parameters); !ok) return ok;
    if (app.count("--dtype") > 0) {
      if (auto ok = take(parse_dtype_size, "--dtype", raw.dtype, element); !ok) return ok;
    }
    check.gradient_bytes = n_parameters * element;
  }
  return {};
}

Result<void> choose_measurements(const CLI::App& app, const Raw& raw, check::CheckOptions& check) {
  if (raw.quick && raw.full) return fail(usage_error("--quick", "can't be used together with --full"));
  if (raw.quick) check.depth = check::CheckDepth::kQuick;
  if (raw.full) check.depth = check::CheckDepth::kFull;
  if (app.count("--for") > 0) {
    if (auto ok = take(parse_purpose, "--for", raw.purpose, check.purpose); !ok) return ok;
  }
  if (app.count("--max-rate") > 0) {
    if (auto ok = take(parse_rate, "--max-rate", raw.max_rate, check.max_rate_bps); !ok) return ok;
  }
  if (app.count("--step-time") > 0) {
    if (auto ok = take(parse_time, "--step-time", raw.step_time, check.step_seconds); !ok) return ok;
  }
  return {};
}

// Checked before anything is measured, so that an unusable file doesn't cost minutes.
Result<void> check_files(const CLI::App& app, const Raw& raw) {
  if (app.count("--baseline") > 0) {
    const auto text = read_file(raw.baseline);
    if (!text) return fail(usage_error("--baseline", text.error().cause, "drun check ... --save-baseline FILE"));
  }
  const struct {
    const char* option;
    const std::string* path;
  } written[] = {{"--save-baseline", &raw.save_baseline}, {"--html", &raw.html}};
  for (const auto& [option, path] : written) {
    if (app.count(option) == 0) continue;
    if (path->empty() || *path == "-") {
      return fail(usage_error(option, "is not written to standard output", std::string(option) + " FILE"));
    }
    if (auto ok = check_writable(option, *path); !ok) return ok;
  }
  return {};
}

// Everything except the command.
Result<void> fill_check(const CLI::App& app, const Raw& raw, const launcher::Environment& own_env, CheckCommand& out) {
  auto hosts = chosen_hosts(raw, 1, own_env);
  if (!hosts) return fail(std::move(hosts.error()));
  auto connect = connect_options(raw);
  if (!connect) return fail(std::move(connect.error()));
  const auto timeout = seconds("--timeout", raw.timeout, true);
  if (!timeout) return fail(timeout.error());
  out.check.hosts = std::move(*hosts);
  out.check.connect = std::move(*connect);
  out.check.interfaces = raw.interfaces;
  out.check.timeout = *timeout;
  out.check.working_directory = current_directory();
  if (auto ok = choose_measurements(app, raw, out.check); !ok) return fail(std::move(ok.error()));
  if (auto ok = choose_gradients(app, raw, out.check); !ok) return fail(std::move(ok.error()));
  if (auto ok = check_files(app, raw); !ok) return fail(std::move(ok.error()));
  out.check.baseline_file = raw.baseline;
  out.check.save_baseline_file = raw.save_baseline;
  out.json = raw.json;
  out.strict = raw.strict;
  out.html_file = raw.html;
  out.log_level = log_level(raw);
  out.log_file = raw.log_file;
  return {};
}

std::size_t prose_width() {
  winsize size{};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return kDefaultWidth;
  return std::clamp<std::size_t>(size.ws_col, kMinWidth, kMaxWidth);
}

}  // namespace

TextStyle style_of_stdout() {
  TextStyle style;
  style.color = wants_color(STDOUT_FILENO);
  style.width = prose_width();
  return style;
}

std::vector<OptionRow> check_rows() {
  CLI::App app;
  Raw raw;
  describe(app, raw);
  return option_rows(app);
}

Result<CheckCommand> parse_check(const std::vector<std::string>& args, const launcher::Environment& own_env) {
  CLI::App app;
  Raw raw;
  describe(app, raw);
  const ValueOptions with_value = value_options(app);
  const SplitArgs parts = split_command(rewrite_argv(args, with_value), with_value);
  CheckCommand out;
  const auto parsed = parse_words(app, parts.options, "drun check");
  if (!parsed) return fail(parsed.error());
  if (!*parsed) {
    out.help = usage(app);
    return out;
  }
  auto config = read_config(app, "check", raw, own_env);
  if (!config) return fail(std::move(config.error()));
  out.check.command = parts.command;
  if (auto ok = fill_check(app, raw, own_env, out); !ok) return fail(config->explain(std::move(ok.error())));
  out.config = std::move(config->sources);
  return out;
}

int command_check(const std::vector<std::string>& args, const Checker& checker, Printer& printer,
                  const launcher::Environment& own_env) {
  auto command = parse_check(args, own_env);
  if (!command) {
    printer.error(command.error());
    return exit_status(command.error().code);
  }
  if (const auto status = begin(*command, command->check.hosts, printer)) return *status;
  if (command->log_level != log::Level::kOff && command->log_file.empty()) printer.disable_status();
  const check::CheckResult result = checker.check(std::move(command->check), printer);
  int status = checker.status(result, command->strict);
  if (result.network_error && result.network_error->code == Errc::kUsage) {
    printer.error(*result.network_error);
    return status;
  }
  // The page comes first: a reader of stdout that exits early must not cost it.
  if (!command->html_file.empty()) {
    if (auto written = write_whole(command->html_file, check_html(result)); !written) {
      printer.error(std::move(written.error()).with_subject("--html"));
      if (status == kExitOk) status = kExitUsage;
    }
  }
  const std::string text = command->json ? check_json(result) : check_text(result, style_of_stdout());
  if (const auto failed = write_output(text, printer)) return *failed;
  return status;
}

}  // namespace drun::cli
