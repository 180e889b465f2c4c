#include "launcher/connect/bootstrap_answer.h"

#include "base/clean_text.h"
#include "base/text.h"
#include "control/frames.h"

namespace drun::launcher {

namespace {

BootstrapAnswer::Kind kind_of(std::string_view word) {
  if (word == "CACHED") return BootstrapAnswer::kCached;
  if (word == "NEED") return BootstrapAnswer::kNeed;
  if (word == "NEEDGZ") return BootstrapAnswer::kNeedGzip;
  if (word == "NEEDZST") return BootstrapAnswer::kNeedZstd;
  if (word == "MACHINE") return BootstrapAnswer::kMachine;
  if (word == "NOPLACE") return BootstrapAnswer::kNoPlace;
  if (word == "FULL") return BootstrapAnswer::kFull;
  if (word == "BROKEN") return BootstrapAnswer::kBroken;
  return BootstrapAnswer::kNone;
}

}  // namespace

BootstrapAnswer find_bootstrap_answer(std::string_view text, const std::string& nonce) {
  BootstrapAnswer answer;
  const auto magic = text.find(control::kMagic);
  const std::string mark = "DRUN-" + nonce + "-";
  for (auto at = text.find(mark); at < magic; at = text.find(mark, at + mark.size())) {
    const auto line_end = text.find('\n', at);
    if (line_end == std::string_view::npos) return answer;
    const std::string_view line = text.substr(at + mark.size(), line_end - at - mark.size());
    const auto space = line.find(' ');
    answer.kind = kind_of(line.substr(0, space));
    if (answer.kind == BootstrapAnswer::kNone) continue;
    answer.end = line_end + 1;
    if (space != std::string_view::npos) answer.detail = clean_line(trim(line.substr(space + 1)));
    return answer;
  }
  if (magic != std::string_view::npos) {
    answer.kind = BootstrapAnswer::kMagic;
    answer.end = magic + control::kMagic.size();
  }
  return answer;
}

}  // namespace drun::launcher
