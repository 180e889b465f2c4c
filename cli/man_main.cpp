// Makes a man page at build time: drun-man-page NAME VERSION SOURCE OUT, with NAME as "drun-check". By hand it renews
// the page of all options: drun-man-page --options-page docs/options.md.
#include <cstdio>
#include <exception>
#include <string>
#include <string_view>
#include <vector>

#include "base/fd.h"
#include "base/text.h"
#include "cli/command_rows.h"
#include "cli/help.h"
#include "cli/man_page.h"
#include "cli/options_page.h"
#include "cli/whole_file.h"

namespace {

constexpr std::string_view kPrefix = "drun-";

// "check" of "drun-check"; "" of "drun".
std::string_view subcommand_of(std::string_view page) {
  return drun::starts_with(page, kPrefix) ? page.substr(kPrefix.size()) : "";
}

std::string summary_of(std::string_view subcommand) {
  for (const auto& [name, summary] : drun::cli::kSubcommands) {
    if (subcommand == name) return summary;
  }
  return drun::cli::kSummary;
}

int write(const std::string& file, const std::string& page) {
  if (auto written = drun::cli::write_whole(file, page); !written) {
    std::fprintf(stderr, "drun-man-page: %s\n", written.error().message().c_str());
    return 1;
  }
  return 0;
}

int run(const std::vector<std::string>& args) {
  if (args.size() == 2 && args[0] == "--options-page") return write(args[1], drun::cli::options_page());
  if (args.size() != 4) {
    std::fputs("usage: drun-man-page NAME VERSION SOURCE OUT\n       drun-man-page --options-page OUT\n", stderr);
    return 2;
  }
  const auto source = drun::read_file(args[2]);
  if (!source) {
    std::fprintf(stderr, "drun-man-page: %s\n", source.error().message().c_str());
    return 1;
  }
  const std::string_view subcommand = subcommand_of(args[0]);
  const auto page =
      drun::cli::man_page(*source, args[0], summary_of(subcommand), drun::cli::command_rows(subcommand), args[1]);
  return write(args[3], page);
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
