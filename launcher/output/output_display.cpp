#include "launcher/output/output_display.h"

#include <limits>

namespace drun::launcher {

namespace {
constexpr int kOwn = std::numeric_limits<int>::max();  // not the number of a source
}

OutputDisplay::OutputDisplay(OutputTags tags, std::size_t n_ranks, Screen screen)
    : tags_(std::move(tags)), screen_(screen), is_raw_(tags_.empty() && n_ranks == 1), sources_(2 * n_ranks) {
  if (is_raw_) return;
  if (screen_.out == Screen::Kind::kTerminal) out_.terminal.emplace(screen_.bars_out);
  if (screen_.err == Screen::Kind::kTerminal) err_.terminal.emplace(screen_.bars_err);
}

std::string_view OutputDisplay::tag_of(std::size_t source, std::uint64_t time_ns, bool is_continued) {
  const bool color = &target(stream_of(source)) == &err_ ? screen_.color_err : screen_.color_out;
  return tags_.of(static_cast<int>(source / 2), time_ns, is_continued, color);
}

void OutputDisplay::show(int rank, Stream stream, std::uint64_t time_ns, std::string_view piece) {
  const std::size_t i = index(rank, stream);
  Source& source = sources_[i];
  target(stream).file.put(static_cast<int>(i), tag_of(i, time_ns, source.is_inside_line), piece);
  source.is_inside_line = piece.back() != '\n' && piece.back() != '\r';
}

void OutputDisplay::put(int rank, Stream stream, std::uint64_t time_ns, std::string_view bytes) {
  if (is_raw_) {
    target(stream).file.put_raw(0, bytes);
    return;
  }
  const std::size_t i = index(rank, stream);
  if (auto& terminal = target(stream).terminal) {
    put_on(*terminal, i, time_ns, bytes);
    return;
  }
  if (bytes.empty()) {
    show_rest(i, false);
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

void OutputDisplay::show_rest(std::size_t source, bool is_over) {
  LineAssembler& lines = sources_[source].lines;
  const std::string rest = is_over ? lines.take_all() : lines.take_rest();
  if (!rest.empty()) show(static_cast<int>(source / 2), stream_of(source), sources_[source].time_ns, rest);
}

// ---- terminals

void OutputDisplay::show_line(TerminalOutput& terminal, std::size_t source, std::uint64_t time_ns,
                              const TerminalLines::Line& line) {
  const auto owner = static_cast<int>(source);
  if (line.replaces_part) terminal.take_back(owner);
  const bool is_continued = line.is_continued && !line.replaces_part;
  // If others broke the line, its end alone has nothing to show.
  if (is_continued && line.text.empty() && !terminal.stands_in_line_of(owner)) return;
  terminal.put(owner, tag_of(source, time_ns, is_continued), line.text, line.is_ended);
}

void OutputDisplay::put_on(TerminalOutput& terminal, std::size_t i, std::uint64_t time_ns, std::string_view bytes) {
  Source& source = sources_[i];
  std::uint64_t time = source.rows.is_inside_line() ? source.time_ns : time_ns;
  const TerminalLines::Sink show = [&](const TerminalLines::Line& line) {
    show_line(terminal, i, time, line);
    time = time_ns;
  };
  if (bytes.empty()) {
    source.rows.give_unfinished(show);
    return;
  }
  source.rows.push(bytes, show);
  source.time_ns = time;
  std::vector<std::string> bars = source.rows.bars();
  if (!bars.empty()) {
    terminal.take_back(static_cast<int>(i));
    const std::string tag(tag_of(i, time_ns, false));
    for (auto& bar : bars) bar.insert(0, tag);
  }
  terminal.set_bars(static_cast<int>(i), std::move(bars));
}

void OutputDisplay::end_on(TerminalOutput& terminal, std::size_t i) {
  Source& source = sources_[i];
  source.rows.end([&](const TerminalLines::Line& line) { show_line(terminal, i, source.time_ns, line); });
  terminal.set_bars(static_cast<int>(i), {});
}

void OutputDisplay::resize(TerminalSize out, TerminalSize err) {
  if (out_.terminal) out_.terminal->resize(out);
  if (err_.terminal) err_.terminal->resize(err);
}

void OutputDisplay::forget_screen() {
  if (out_.terminal) out_.terminal->forget();
  if (err_.terminal) err_.terminal->forget();
}

void OutputDisplay::draw(bool changed_too) {
  for (Target* target : {&out_, &err_}) {
    auto& terminal = target->terminal;
    if (terminal && (terminal->is_lifted() || (changed_too && terminal->is_stale()))) terminal->draw();
  }
}

bool OutputDisplay::has_changed_bars() const {
  return (out_.terminal && out_.terminal->is_stale()) || (err_.terminal && err_.terminal->is_stale());
}

// ---- both

void OutputDisplay::end(int rank, Stream stream) {
  const std::size_t i = index(rank, stream);
  if (auto& terminal = target(stream).terminal) {
    end_on(*terminal, i);
    return;
  }
  show_rest(i, true);
  if (!tags_.empty()) target(stream).file.close_line(static_cast<int>(i));
}

void OutputDisplay::put_own(std::string_view text) {
  Target& own = own_target();
  if (!own.terminal) {
    own.file.put(kOwn, {}, text);
    return;
  }
  const bool is_ended = !text.empty() && text.back() == '\n';
  if (is_ended) text.remove_suffix(1);
  own.terminal->put(kOwn, {}, text, is_ended);
}

bool OutputDisplay::own_words_break_a_line() const {
  const Target& own = screen_.is_one ? out_ : err_;
  return own.terminal ? own.terminal->stands_in_line() : own.file.stands_in_line();
}

void OutputDisplay::show_all_unfinished() {
  for (std::size_t i = 0; i < sources_.size(); ++i) {
    if (auto& terminal = target(stream_of(i)).terminal) {
      end_on(*terminal, i);
    } else {
      show_rest(i, true);
    }
  }
}

void OutputDisplay::clear() {
  for (Target* target : {&out_, &err_}) {
    target->file.clear();
    if (target->terminal) target->terminal->clear();
  }
}

}  // namespace drun::launcher
