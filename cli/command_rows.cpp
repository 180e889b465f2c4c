#include "cli/command_rows.h"

#include "cli/command_bench.h"
#include "cli/command_check.h"
#include "cli/command_clean.h"
#include "cli/command_init.h"
#include "cli/options.h"

namespace drun::cli {

std::vector<OptionRow> command_rows(std::string_view subcommand) {
  if (subcommand == "bench") return bench_rows();
  if (subcommand == "check") return check_rows();
  if (subcommand == "clean") return clean_rows();
  if (subcommand == "init") return init_rows();
  return run_rows();
}

}  // namespace drun::cli
