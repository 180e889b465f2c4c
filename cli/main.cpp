// drun: starts a distributed program on many machines. docs/architecture.md shows a job's path through the folders.
#include <fcntl.h>
#include <sodium.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <string>
#include <utility>
#include <vector>

#include "base/clean_text.h"
#include "base/exit_status.h"
#include "base/fd.h"
#include "base/text.h"
#include "check/verdict.h"
#include "cli/command_bench.h"
#include "cli/command_check.h"
#include "cli/command_clean.h"
#include "cli/command_init.h"
#include "cli/command_run.h"
#include "cli/completion.h"
#include "cli/config/config_files.h"
#include "cli/horovodrun.h"
#include "cli/job_options.h"
#include "cli/options.h"
#include "cli/printer.h"
#include "launcher/plan/allocation.h"
#include "launcher/plan/worker_env.h"
#include "transport/ssh_hosts.h"

extern char** environ;

namespace {

drun::launcher::Environment own_environment() {
  drun::launcher::Environment out;
  for (const char* const* e = environ; *e != nullptr; ++e) {
    const char* equals = std::strchr(*e, '=');
    if (equals != nullptr && equals != *e) out[std::string(*e, equals)] = equals + 1;
  }
  return out;
}

// A caller may have closed 0, 1 or 2; the next descriptor opened would then serve as standard output.
void fill_standard_descriptors() {
  for (int fd = 0; fd <= 2; ++fd) {
    if (::fcntl(fd, F_GETFD) < 0 && errno == EBADF && ::open("/dev/null", O_RDWR) < 0) return;
  }
}

using drun::cli::Printer;
using Arguments = std::vector<std::string>;

int run_job(const Arguments& args, Printer& printer) {
  auto options = drun::cli::parse_options(args, own_environment());
  if (!options) {
    printer.error(options.error());
    return drun::exit_status(options.error().code);
  }
  return drun::cli::command_run(std::move(*options), printer);
}

drun::cli::Checker real_checker() {
  drun::cli::Checker checker;
  checker.check = [](drun::check::CheckOptions options, drun::launcher::Reporter& reporter) {
    options.environment = drun::launcher::base_environment(own_environment(), {}, true);
    options.cache_directory = drun::cli::cache_directory(own_environment());
    return drun::check::check_hosts(std::move(options), reporter);
  };
  checker.status = drun::check::check_status;
  return checker;
}

int check(const Arguments& args, Printer& printer) {
  return drun::cli::command_check(args, real_checker(), printer, own_environment());
}

int init(const Arguments& args, Printer& printer) {
  return drun::cli::command_init(args, real_checker(), printer, own_environment());
}

int bench(const Arguments& args, Printer& printer) {
  return drun::cli::command_bench(args, own_environment(), printer);
}

int clean(const Arguments& args, Printer& printer) {
  return drun::cli::command_clean(args, printer, own_environment());
}

int horovodrun(const Arguments& args, Printer& printer) {
  using drun::cli::UnnamedHosts;
  const auto& environment = own_environment();
  // drun refuses to be one of several tasks, unless hosts are named.
  const bool uses_batch_job = environment.count("LSB_JOBID") > 0 || drun::launcher::one_of_several_tasks(environment);
  auto translated = drun::cli::translate_horovodrun(
      args, [](const std::string& path) { return drun::read_file(path, drun::cli::kMaxConfigBytes); },
      uses_batch_job ? UnnamedHosts::kBatchJob : UnnamedHosts::kThisMachine);
  if (!translated) {
    printer.error(translated.error());
    return drun::exit_status(translated.error().code);
  }
  if (!translated->ignored.empty()) {
    printer.note("options of Horovod's own library, without a meaning here: " + drun::join(translated->ignored, ", "));
  }
  return run_job(translated->args, printer);
}

// For the scripts in packaging/completions.
int complete(const Arguments& args, Printer&) {
  drun::cli::HostSource source;
  source.hosts = drun::transport::ssh_hosts;
  source.groups = [](const std::string& config) { return drun::cli::group_names(config, own_environment()); };
  const std::string text = drun::cli::completion_text(drun::cli::complete(args, source));
  return drun::write_all(STDOUT_FILENO, text) ? drun::kExitOk : drun::kExitInternal;
}

// Any other first word, or none, is the beginning of `drun [options] COMMAND`.
constexpr struct {
  const char* name;
  int (*function)(const Arguments& args, Printer& printer);
} kCommands[] = {{"check", check}, {"bench", bench},           {"clean", clean},
                 {"init", init},   {"horovodrun", horovodrun}, {"__complete", complete}};

int run(int argc, char** argv) {
  fill_standard_descriptors();
  Printer printer;
  if (sodium_init() < 0) {
    printer.error(drun::Error(drun::Errc::kInternal, "libsodium", "can't be initialized"));
    return drun::kExitInternal;
  }
  Arguments args(argv + 1, argv + argc);
  for (const auto& command : kCommands) {
    if (args.empty() || args[0] != command.name) continue;
    args.erase(args.begin());
    return command.function(args, printer);
  }
  return run_job(args, printer);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "drun: internal error: %s\n", drun::clean_line(e.what()).c_str());
    return drun::kExitInternal;
  }
}
