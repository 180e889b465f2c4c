#include "cli/check_report/codes.h"

#include "base/text.h"

namespace drun::cli {

namespace {

constexpr std::string_view kSections =
#include DRUN_CHECK_CODES
    ;

constexpr std::string_view kHead = "### ";

bool is_heading(std::string_view line) { return line.starts_with("#"); }

}  // namespace

std::string code_meaning(std::string_view code) {
  std::string out;
  bool inside = false;
  for (std::string_view line : split(kSections, '\n')) {
    line = trim(line);
    if (is_heading(line)) {
      inside = line.starts_with(kHead) && line.substr(kHead.size()) == code;
    } else if (inside && line.empty() && !out.empty()) {
      break;
    } else if (inside && !line.empty()) {
      out += (out.empty() ? "" : " ") + std::string(line);
    }
  }
  return out;
}

std::vector<std::string> explained_codes() {
  std::vector<std::string> out;
  for (std::string_view line : split(kSections, '\n')) {
    line = trim(line);
    if (line.starts_with(kHead)) out.emplace_back(line.substr(kHead.size()));
  }
  return out;
}

}  // namespace drun::cli
