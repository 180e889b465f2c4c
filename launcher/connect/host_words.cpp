#include "launcher/connect/host_words.h"

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

}  // namespace drun::launcher
