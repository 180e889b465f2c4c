#include "launcher/output_display.h"

#include <limits>

namespace drun::launcher {

namespace {
constexpr int kOwn = std::numeric_limits<int>::max();  // no source's number
}

OutputDisplay::OutputDisplay(OutputTags tags, std::size_t n_ranks, Screen screen)
    : tags_(std::move(tags)), screen_(screen), is_raw_(tags_.empty() && n_ranks == 1), sources_(2 * n_ranks) {}

void OutputDisplay::show(int rank, Stream stream, std::uint64_t time_ns, std::string_view piece) {
  const std::size_t i = index(rank, stream);
  Source& source = sources_[i];
  const bool color = stream == Stream::kStderr ? screen_.color_err : screen_.color_out;
  target(stream).put(static_cast<int>(i), tags_.of(rank, time_ns, source.is_inside_line, color), piece);
  source.is_inside_line = piece.back() != '\n' && piece.back() != '\r';
}

void OutputDisplay::put(int rank, Stream stream, std::uint64_t time_ns, std::string_view bytes) {
  if (is_raw_) {
    target(stream).put(0, {}, bytes);
    return;
  }
  const std::size_t i = index(rank, stream);
  if (bytes.empty()) {
    show_rest(i);
    return;
  }
  Source& source = sources_[i];
  std::uint64_t time = source.lines.has_rest() ? source.time_ns : time_ns;
  source.lines.push(bytes, [&](std::string_view piece) {
    show(rank, stream, time, piece);
    time = time_ns;
  });
  source.time_ns = time;
}

void OutputDisplay::show_rest(std::size_t source) {
  const std::string rest = sources_[source].lines.take_rest();
  if (rest.empty()) return;
  const Stream stream = source % 2 == 1 ? Stream::kStderr : Stream::kStdout;
  show(static_cast<int>(source / 2), stream, sources_[source].time_ns, rest);
}

void OutputDisplay::end(int rank, Stream stream) {
  const std::size_t i = index(rank, stream);
  show_rest(i);
  if (!tags_.empty()) target(stream).close_line(static_cast<int>(i));
}

void OutputDisplay::put_own(std::string_view text) { (screen_.is_one ? out_ : err_).put(kOwn, {}, text); }

void OutputDisplay::show_all_unfinished() {
  for (std::size_t i = 0; i < sources_.size(); ++i) show_rest(i);
}

void OutputDisplay::clear() {
  out_.clear();
  err_.clear();
}

}  // namespace drun::launcher
