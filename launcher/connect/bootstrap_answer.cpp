#include "launcher/connect/bootstrap_answer.h"

#include "base/text.h"
#include "control/frames.h"

namespace drun::launcher {

BootstrapAnswer find_bootstrap_answer(std::string_view text, const std::string& nonce) {
  BootstrapAnswer best;
  std::size_t best_at = std::string_view::npos;
  const auto magic = text.find(control::kMagic);
  if (magic != std::string_view::npos) {
    best_at = magic;
    best.kind = BootstrapAnswer::kMagic;
    best.end = magic + control::kMagic.size();
  }
  const std::string mark = "DRUN-" + nonce + "-";
  const auto at = text.find(mark);
  if (at == std::string_view::npos || at > best_at) return best;
  const auto line_end = text.find('\n', at);
  if (line_end == std::string_view::npos) return best;
  std::string_view line = text.substr(at + mark.size(), line_end - at - mark.size());
  const auto space = line.find(' ');
  const std::string_view word = line.substr(0, space);
  best.end = line_end + 1;
  best.detail = space == std::string_view::npos ? std::string() : std::string(trim(line.substr(space + 1)));
  if (word == "CACHED") return BootstrapAnswer::kCached;
  if (word == "NEED") best.kind = BootstrapAnswer::kNeed;
  if (word == "MACHINE") best.kind = BootstrapAnswer::kMachine;
  if (word == "NOPLACE") best.kind = BootstrapAnswer::kNoPlace;
  if (word == "FULL") best.kind = BootstrapAnswer::kFull;
  if (word == "BROKEN") best.kind = BootstrapAnswer::kBroken;
  return best;
}

}  // namespace drun::launcher
