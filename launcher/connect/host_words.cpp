#include "launcher/connect/host_words.h"

#include <algorithm>
#include <utility>

#include "base/clean_text.h"
#include "base/text.h"

namespace drun::launcher {

std::vector<std::string> lines_of_host(std::string_view bytes) {
  std::vector<std::string> out;
  for (const auto line : split(bytes.substr(0, kShownBytes), '\n')) {
    std::string text = clean_line(trim(line));
    if (text.find_first_not_of("@ ") != std::string::npos) out.push_back(std::move(text));
  }
  return out;
}

std::vector<std::string> last_lines_of_host(std::string_view bytes) {
  if (bytes.size() > kShownBytes) {
    bytes.remove_prefix(bytes.size() - kShownBytes);
    bytes.remove_prefix(std::min(bytes.size(), bytes.find('\n') + 1));  // the rest of a line
  }
  return lines_of_host(bytes);
}

}  // namespace drun::launcher
