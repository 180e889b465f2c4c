// check-page NAME HOSTS html|text|color|json: writes a report of `drun check` about made-up hosts to standard output.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "cli/check_report/report.h"
#include "tests/unit/cli/check_report/samples.h"

int main(int argc, char** argv) {
  using namespace drun::cli;
  const auto known = samples::names();
  const int n_hosts = argc == 4 ? std::atoi(argv[2]) : 0;
  if (n_hosts < 1 || n_hosts > 1000 || std::find(known.begin(), known.end(), argv[1]) == known.end()) {
    std::fprintf(stderr, "usage: check-page NAME HOSTS html|text|color|json\n");
    return 2;
  }
  const auto result = samples::by_name(argv[1], n_hosts);
  TextStyle style;
  style.color = std::strcmp(argv[3], "color") == 0;
  const std::string text = std::strcmp(argv[3], "html") == 0   ? check_html(result)
                           : std::strcmp(argv[3], "json") == 0 ? check_json(result)
                                                               : check_text(result, style);
  return std::fwrite(text.data(), 1, text.size(), stdout) == text.size() ? 0 : 1;
}
