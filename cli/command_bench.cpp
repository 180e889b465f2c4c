#include "cli/command_bench.h"

#include <CLI/CLI.hpp>

#include "base/exit_status.h"
#include "base/text.h"
#include "bench/worker.h"
#include "cli/config/config_files.h"
#include "cli/help.h"
#include "cli/job_options.h"
#include "cli/usage.h"
#include "launcher/plan/placement.h"

namespace drun::cli {

namespace {

constexpr std::uint64_t kMaxIterations = 10000000;

// Options as CLI11 fills them in, unchecked. All are text, so that errors are worded alike.
struct Raw : RawJobOptions {
  std::string min_bytes = "32M", max_bytes = "32M", step_bytes = "1M", factor = "1";
  std::string iterations = "20", warmups = "1", checks = "1", registers = "0";
  std::vector<std::string> kinds;
  std::string op = "sum", dtype = "float", root = "0", backend = "cpu";
  bool json = false;
};

void describe(CLI::App& app, Raw& raw) {
  app.set_help_flag("-h,--help", "print this help")->group(kOther);
  app.add_option("-o", raw.kinds, join(bench::kind_names(), ", ") + "; several by commas; or a reduction, as --redop")
      ->type_name("LIST")
      ->allow_extra_args(false);
  app.add_option("-b,--minbytes", raw.min_bytes, "smallest size, with K, M or G")
      ->type_name("SIZE")
      ->capture_default_str();
  app.add_option("-e,--maxbytes", raw.max_bytes, "largest size")->type_name("SIZE")->capture_default_str();
  app.add_option("-f,--stepfactor", raw.factor, "each size is so many times the one before; 1: -i")
      ->type_name("N")
      ->capture_default_str();
  app.add_option("-i,--stepbytes", raw.step_bytes, "each size is so much larger than the one before")
      ->type_name("SIZE")
      ->capture_default_str();
  app.add_option("-n,--iters", raw.iterations, "calls that are timed, for each size")
      ->type_name("N")
      ->capture_default_str();
  app.add_option("-w,--warmup_iters", raw.warmups, "calls before, for sizes each twice the one before")
      ->type_name("N")
      ->capture_default_str();
  app.add_option("-c,--check", raw.checks, "calls whose results are checked, for each size; 0: none")
      ->type_name("N")
      ->capture_default_str();
  app.add_option("-d,--datatype", raw.dtype, "int8, uint8, int32, ..., half, float, double, bfloat16, or all")
      ->type_name("TYPE")
      ->capture_default_str();
  app.add_option("--redop", raw.op, "sum, prod, max, min, avg, all of these, or adasum")
      ->type_name("OP")
      ->capture_default_str();
  app.add_option("-r,--root", raw.root, "the root of broadcast, reduce, gather and scatter")
      ->type_name("RANK|all")
      ->capture_default_str();
  app.add_option("--backend", raw.backend, "cpu: memory of the host; nccl: memory of a GPU for each rank")
      ->type_name("cpu|nccl")
      ->capture_default_str();
  app.add_option("-R,--local_register", raw.registers,
                 "1: register the buffers with NCCL, which may then use them in place")
      ->type_name("0|1")
      ->capture_default_str();
  app.add_flag("--json", raw.json, "JSON in place of the table")->group(kReports);
  describe_workers(app, raw);
  describe_hosts(app, raw, Letters::kWithoutIdentity);
  describe_interfaces(app, raw);
  describe_cache(app, raw);
  app.add_option("-x", raw.exports, "environment for the workers, as DRUN_SHARED_MEMORY=0")
      ->type_name("NAME[=V]")
      ->allow_extra_args(false)
      ->group(kEnvironment);
  app.add_option("--timeout", raw.timeout, "seconds until it is ended; 0: never")
      ->type_name("S")
      ->capture_default_str()
      ->group(kTimeLimits);
  describe_connection(app, raw);
  describe_log(app, raw);
  describe_config(app, raw);
}

std::string usage(const CLI::App& app) {
  return "drun bench times collectives of libdrun between hosts, and checks their results. Nothing is needed there.\n"
         "\n"
         "usage: drun bench [options]\n"
         "\n"
         "  drun bench -np 4                                                     four workers here\n"
         "  drun bench -np 4 -H a:2,b:2 -p 12345 -b 8 -e 128M -f 2\n"
         "  drun bench -H a:8,b:8 -o all_reduce,broadcast -b 1M -e 64M -f 4 -d half --json\n"
         "  drun bench -H a:8,b:8 --backend nccl -b 8 -e 8G -f 2                 a GPU for each worker\n"
         "\n"
         "Options and table are those of nccl-tests, with columns for the median (p50) and the slowest calls (p99) "
         "and\n"
         "for the share of what memory, or the network's line rate, allows: docs/bench.md.\n"
         "\n" +
         option_sections(option_rows(app)) +
         "\nThe exit status is 1 if a result is wrong or a collective fails, 2: bad usage; else as of any job.\n";
}

template <typename T>
Result<void> take(Result<T> value, const char* option, T& into) {
  if (!value) return fail(std::move(value.error()).with_subject(option));
  into = std::move(*value);
  return {};
}

Result<int> number(const std::string& text, std::uint64_t least) {
  const auto value = parse_number(text);
  if (!value || *value < least || *value > kMaxIterations) {
    return fail(usage_error(
        "", "'" + text + "' is not a number from " + std::to_string(least) + " to " + std::to_string(kMaxIterations)));
  }
  return static_cast<int>(*value);
}

// nccl-tests uses -o for the reduction, and has a program for each collective: "broadcast_perf".
Result<std::vector<bench::Kind>> choose_kinds(Raw& raw) {
  std::vector<bench::Kind> out;
  for (const auto& words : raw.kinds) {
    for (const auto word : split(words, ',')) {
      if (bench::is_op_name(word)) {
        raw.op = word;
        continue;
      }
      std::string name(word);
      const std::string suffix = "_perf";
      if (name.size() > suffix.size() && name.substr(name.size() - suffix.size()) == suffix) {
        name.resize(name.size() - suffix.size());
      }
      const auto kind = bench::kind_of(name);
      if (!kind) {
        const auto near = nearest(name, bench::kind_names());
        return fail(usage_error("-o", "'" + std::string(word) + "' is no collective",
                                near ? "-o " + *near : "one of " + join(bench::kind_names(), ", ")));
      }
      out.push_back(*kind);
    }
  }
  if (out.empty()) out.push_back(bench::Settings().kind);
  return out;
}

Result<void> fill_settings(Raw& raw, std::vector<bench::Settings>& all) {
  auto kinds = choose_kinds(raw);
  if (!kinds) return fail(std::move(kinds.error()));
  bench::Settings s;
  if (auto ok = take(bench::parse_size(raw.min_bytes), "-b", s.min_bytes); !ok) return ok;
  if (auto ok = take(bench::parse_size(raw.max_bytes), "-e", s.max_bytes); !ok) return ok;
  if (auto ok = take(bench::parse_size(raw.step_bytes), "-i", s.step_bytes); !ok) return ok;
  int factor = 1;
  if (auto ok = take(number(raw.factor, 1), "-f", factor); !ok) return ok;
  s.factor = static_cast<std::uint64_t>(factor);
  if (auto ok = take(number(raw.iterations, 1), "-n", s.n_iterations); !ok) return ok;
  if (auto ok = take(number(raw.warmups, 0), "-w", s.n_warmups); !ok) return ok;
  if (auto ok = take(number(raw.checks, 0), "-c", s.n_checks); !ok) return ok;
  if (auto ok = take(bench::parse_dtypes(raw.dtype), "-d", s.dtypes); !ok) return ok;
  if (auto ok = take(bench::parse_ops(raw.op), "--redop", s.ops); !ok) return ok;
  if (auto ok = take(bench::parse_root(raw.root), "-r", s.root); !ok) return ok;
  if (auto ok = take(bench::parse_backend(raw.backend), "--backend", s.backend); !ok) return ok;
  if (raw.registers != "0" && raw.registers != "1") {
    return fail(usage_error("-R", "'" + raw.registers + "' is neither 0 nor 1", "-R 1"));
  }
  s.registers = raw.registers == "1";
  s.json = raw.json;
  for (const auto kind : *kinds) {
    s.kind = kind;
    if (auto ok = bench::check(s); !ok) return ok;
    all.push_back(s);
  }
  return {};
}

Result<void> check_size(const bench::Settings& settings, int size) {
  const std::string workers = plural(static_cast<std::size_t>(size), "worker");
  if (bench::info(settings.kind).rooted && settings.root >= size) {
    return fail(usage_error("-r", "there is no rank " + std::to_string(settings.root) + " among " + workers));
  }
  if (settings.kind == bench::Kind::kSendRecv && size < 2) {
    return fail(usage_error("-o", "sendrecv needs two workers", "-np 2"));
  }
  return {};
}

Result<void> fill_bench(const Raw& raw, const launcher::Environment& own_env,
                        const std::vector<bench::Settings>& settings, launcher::JobOptions& job) {
  job.command = {bench::kWorkerPath, bench::kWorkerWord};
  for (auto& word : bench::to_words(settings)) job.command.push_back(std::move(word));
  if (auto ok = fill_job(raw, own_env, job); !ok) return ok;
  job.connect.agent_program = bench::kAgentProgram;
  job.working_directory = "/";  // exists on every host
  job.stdin_mode = launcher::StdinMode::kNone;
  job.output.tag = launcher::TagStyle::kNone;  // only rank 0 writes to stdout
  const auto placed = launcher::place(job.hosts, job.np);
  if (!placed) return fail(placed.error());
  for (const auto& one : settings) {
    if (auto ok = check_size(one, placed->size); !ok) return ok;
  }
  return {};
}

}  // namespace

std::vector<OptionRow> bench_rows() {
  CLI::App app;
  Raw raw;
  describe(app, raw);
  return option_rows(app);
}

Result<BenchCommand> parse_bench(const std::vector<std::string>& args, const launcher::Environment& own_env) {
  CLI::App app;
  Raw raw;
  describe(app, raw);
  BenchCommand out;
  const auto parsed = parse_words(app, args, "drun bench");
  if (!parsed) return fail(parsed.error());
  if (!*parsed) {
    out.help = usage(app);
    return out;
  }
  auto config = read_config(app, "bench", raw, own_env);
  if (!config) return fail(std::move(config.error()));
  auto ok = fill_settings(raw, out.settings);
  if (ok) ok = fill_bench(raw, own_env, out.settings, out.job);
  if (!ok) return fail(config->explain(std::move(ok.error())));
  out.config = std::move(config->sources);
  out.log_level = log_level(raw);
  out.log_file = raw.log_file;
  return out;
}

int command_bench(const std::vector<std::string>& args, const launcher::Environment& own_env, Printer& printer) {
  auto command = parse_bench(args, own_env);
  if (!command) {
    printer.error(command.error());
    return exit_status(command.error().code);
  }
  if (const auto status = begin(*command, command->job.hosts, printer)) return *status;
  if (command->log_level != log::Level::kOff && command->log_file.empty()) printer.disable_status();
  return launcher::run_job(std::move(command->job), printer);
}

}  // namespace drun::cli
