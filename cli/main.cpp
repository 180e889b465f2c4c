// drun: starts a distributed program on many machines. docs/architecture.md shows a job's path through the folders.
#include <fcntl.h>
#include <sodium.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>

#include "base/exit_status.h"
#include "cli/command_bench.h"
#include "cli/command_check.h"
#include "cli/command_clean.h"
#include "cli/command_run.h"
#include "cli/job_options.h"
#include "cli/options.h"
#include "cli/printer.h"
#include "launcher/plan/worker_env.h"

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

int run(int argc, char** argv) {
  fill_standard_descriptors();
  drun::cli::Printer printer;
  if (sodium_init() < 0) {
    printer.error(drun::Error(drun::Errc::kInternal, "libsodium", "can't be initialised"));
    return drun::kExitInternal;
  }
  std::vector<std::string> args(argv + 1, argv + argc);
  if (!args.empty() && args[0] == "clean") {
    args.erase(args.begin());
    return drun::cli::command_clean(args, printer, own_environment());
  }
  if (!args.empty() && args[0] == "bench") {
    args.erase(args.begin());
    return drun::cli::command_bench(args, own_environment(), printer);
  }
  if (!args.empty() && args[0] == "check") {
    args.erase(args.begin());
    const drun::cli::Checker checker{[](drun::check::CheckOptions options, drun::launcher::Reporter& reporter) {
                                       options.environment =
                                           drun::launcher::base_environment(own_environment(), {}, true);
                                       options.cache_directory = drun::cli::cache_directory(own_environment());
                                       return drun::check::check_hosts(std::move(options), reporter);
                                     },
                                     drun::check::check_status};
    return drun::cli::command_check(args, checker, printer, own_environment());
  }
  auto options = drun::cli::parse_options(std::move(args), own_environment());
  if (!options) {
    printer.error(options.error());
    return drun::exit_status(options.error().code);
  }
  return drun::cli::command_run(std::move(*options), printer);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "drun: internal error: %s\n", e.what());
    return drun::kExitInternal;
  }
}
