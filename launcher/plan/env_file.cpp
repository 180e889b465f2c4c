// parse_env_file() of worker_env.h.
#include <algorithm>
#include <string>

#include "base/text.h"
#include "launcher/plan/worker_env.h"

namespace drun::launcher {
namespace {

constexpr std::string_view kBlanks = " \t\r";

bool is_blank(char c) { return kBlanks.find(c) != std::string_view::npos; }

}  // namespace

Result<Environment> parse_env_file(std::string_view text, const std::string& file) {
  Environment out;
  if (starts_with(text, "\xef\xbb\xbf")) text.remove_prefix(3);  // a byte order mark
  std::size_t line_number = 0;
  for (const std::string_view line : split(text, '\n')) {
    ++line_number;
    const auto wrong = [&](std::size_t offset, std::string cause, std::string hint) {
      const std::string place = file + ":" + std::to_string(line_number) + ":" + std::to_string(offset + 1);
      return fail(Error(Errc::kUsage, place, std::move(cause)).with_hint(std::move(hint)));
    };
    std::size_t start = line.find_first_not_of(kBlanks);
    if (start == std::string_view::npos || line[start] == '#') continue;
    const auto nul = line.find('\0');
    if (nul != std::string_view::npos) return wrong(nul, "a NUL byte", "a text file with lines NAME=VALUE");
    constexpr std::string_view kExport = "export";
    if (starts_with(line.substr(start), kExport) && start + kExport.size() < line.size() &&
        is_blank(line[start + kExport.size()])) {
      const auto next = line.find_first_not_of(kBlanks, start + kExport.size());
      if (next != std::string_view::npos) start = next;
    }
    const auto equals = line.find('=', start);
    const std::string_view name = trim(line.substr(start, equals - start));
    if (equals == std::string_view::npos) {
      return wrong(start, "'" + std::string(name) + "' is not NAME=VALUE", "-x NAME passes drun's own value on");
    }
    if (name.empty()) return wrong(start, "the name in front of '=' is missing", "NAME=VALUE");
    if (std::any_of(name.begin(), name.end(), is_blank)) {
      return wrong(start, "a space in the name '" + std::string(name) + "'", "NAME=VALUE");
    }
    std::string_view value = trim(line.substr(equals + 1));
    if (!value.empty() && (value[0] == '"' || value[0] == '\'')) {
      if (value.size() < 2 || value.back() != value[0]) {
        return wrong(static_cast<std::size_t>(value.data() - line.data()), "a quote that is not closed on this line",
                     "-x NAME, for values of several lines");
      }
      value = value.substr(1, value.size() - 2);
    }
    out[std::string(name)] = value;
  }
  return out;
}

}  // namespace drun::launcher
