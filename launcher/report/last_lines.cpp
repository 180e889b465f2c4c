#include "launcher/report/last_lines.h"

#include "base/clean_text.h"
#include "base/text.h"
#include "base/text_width.h"
#include "base/wording.h"

namespace drun::launcher {

namespace {

std::string shown(std::string_view line) {
  // A progress bar rewrites its line: a terminal would show the text after the last carriage return.
  while (!line.empty() && line.back() == '\r') line.remove_suffix(1);
  if (const auto at = line.rfind('\r'); at != std::string_view::npos) line.remove_prefix(at + 1);
  const std::string plain = without_escapes(line);
  std::string out = clean_line(cut_text(plain, LastLines::kLineBytes));
  if (plain.size() > LastLines::kLineBytes) out += "...";
  return out;
}

}  // namespace

void LastLines::push(control::Stream stream, std::string_view bytes) {
  if (bytes.empty()) return;
  if (stream != last_ && !bytes_.empty() && bytes_.back() != '\n') bytes_ += '\n';
  last_ = stream;
  if (bytes.size() > kBytes) {
    bytes_.assign(bytes.substr(bytes.size() - kBytes));
    cut_ = true;
    return;
  }
  bytes_.append(bytes);
  if (bytes_.size() > 2 * kBytes) {
    bytes_.erase(0, bytes_.size() - kBytes);
    cut_ = true;
  }
}

std::vector<std::string> LastLines::lines() const {
  std::string_view text = bytes_;
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.remove_suffix(1);
  std::vector<std::string> out;
  if (text.empty()) return out;
  const auto all = split(text, '\n');
  std::size_t first = all.size() > kLines ? all.size() - kLines : 0;
  if (first == 0 && cut_ && all.size() > 1) first = 1;
  for (std::size_t i = first; i < all.size(); ++i) out.push_back(shown(all[i]));
  return out;
}

}  // namespace drun::launcher
