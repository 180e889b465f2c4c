#include "cli/help.h"

#include "base/text.h"

namespace drun::cli {
namespace {

constexpr std::size_t kColumn = 30;  // where the descriptions begin

// "-H, --hosts LIST", "--tag-output[=rank|host]".
std::string label_of(const OptionRow& row) {
  const std::string names = join(row.names, ", ");
  if (row.value.empty()) return names;
  return row.optional_value ? names + "[=" + row.value + "]" : names + " " + row.value;
}

std::string line_of(const OptionRow& row) {
  std::string out = "  " + label_of(row);
  if (out.size() + 1 > kColumn) out += "\n";
  const std::size_t used = out.back() == '\n' ? 0 : out.size();
  return out + std::string(kColumn - used, ' ') + row.text + "\n";
}

}  // namespace

std::string option_sections(const std::vector<OptionRow>& rows) {
  std::string out, heading;
  for (const auto& row : rows) {
    if (row.heading != heading) out += (out.empty() ? "" : "\n") + row.heading + ":\n";
    heading = row.heading;
    out += line_of(row);
  }
  return out;
}

}  // namespace drun::cli
