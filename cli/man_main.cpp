// Makes a man page at build time: drun-man-page NAME VERSION SOURCE OUT, with NAME as "drun-check".
#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include "base/fd.h"
#include "cli/command_bench.h"
#include "cli/command_check.h"
#include "cli/command_clean.h"
#include "cli/help.h"
#include "cli/man_page.h"
#include "cli/options.h"
#include "cli/whole_file.h"

namespace {

using Rows = std::vector<drun::cli::OptionRow>;

Rows rows_of(const std::string& name) {
  if (name == "drun") return drun::cli::run_rows();
  if (name == "drun-bench") return drun::cli::bench_rows();
  if (name == "drun-check") return drun::cli::check_rows();
  if (name == "drun-clean") return drun::cli::clean_rows();
  return {};
}

std::string summary_of(const std::string& name) {
  for (const auto& [subcommand, summary] : drun::cli::kSubcommands) {
    if (name == std::string("drun-") + subcommand) return summary;
  }
  return drun::cli::kSummary;
}

int run(const std::vector<std::string>& args) {
  if (args.size() != 4) {
    std::fputs("usage: drun-man-page NAME VERSION SOURCE OUT\n", stderr);
    return 2;
  }
  const auto source = drun::read_file(args[2]);
  if (!source) {
    std::fprintf(stderr, "drun-man-page: %s\n", source.error().message().c_str());
    return 1;
  }
  const auto page = drun::cli::man_page(*source, args[0], summary_of(args[0]), rows_of(args[0]), args[1]);
  if (auto written = drun::cli::write_whole(args[3], page); !written) {
    std::fprintf(stderr, "drun-man-page: %s\n", written.error().message().c_str());
    return 1;
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(std::vector<std::string>(argv + 1, argv + argc));
  } catch (const std::exception& e) {
    std::fprintf(stderr, "drun-man-page: %s\n", e.what());
    return 1;
  }
}
