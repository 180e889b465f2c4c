#include "launcher/output/terminal_lines.h"

#include <algorithm>

#include "base/text.h"
#include "base/wording.h"

namespace drun::launcher {

namespace {

constexpr char kEscape = '\x1b';
constexpr std::size_t kLongestEscape = 4096;  // a limit for broken programs
constexpr std::size_t kLongestStyle = 128;
constexpr std::string_view kReset = "\033[0m";

bool is_control(char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }

// True if nothing in the text is visible; it may have colors.
bool is_blank(std::string_view text) {
  while (!text.empty()) {
    if (text[0] == kEscape) {
      const auto end = text.find('m');
      if (end == std::string_view::npos) return true;
      text.remove_prefix(end + 1);
    } else if (text[0] == ' ') {
      text.remove_prefix(1);
    } else {
      return false;
    }
  }
  return true;
}

std::string with_colors_off(const std::string& text) {
  const auto last = text.rfind(kEscape);
  if (last == std::string::npos) return text;
  const auto sequence = std::string_view(text).substr(last);
  const bool is_off = starts_with(sequence, kReset) || starts_with(sequence, "\033[m");
  return is_off ? text : text + std::string(kReset);
}

void drop_last_character(std::string& text) {
  const auto color = text.rfind(kEscape);
  if (color != std::string::npos && text.find('m', color) == text.size() - 1) return;
  while (!text.empty() && (static_cast<unsigned char>(text.back()) & 0xc0) == 0x80) text.pop_back();
  if (!text.empty()) text.pop_back();
}

// A title, a hyperlink, a picture: up to BEL or ESC \.
bool is_text_sequence(const std::string& escape) { return escape[1] == ']' || escape[1] == 'P'; }

// The first number of "\033[12;3A"; 1 if there is none or it is 0.
std::size_t count_of(const std::string& sequence) {
  const auto end = sequence.find_first_not_of("0123456789", 2);
  const auto number = parse_number(std::string_view(sequence).substr(2, end - 2));
  return number && *number > 0 ? static_cast<std::size_t>(*number) : 1;
}

}  // namespace

void TerminalLines::push(std::string_view bytes, const Sink& sink) {
  while (!bytes.empty()) {
    if (!escape_.empty()) {
      const char c = bytes[0];
      // A line end or a new sequence ends a sequence that was never finished.
      const bool is_inside_text = escape_.size() > 1 && is_text_sequence(escape_);
      if (c == '\n' || c == '\r' || (c == kEscape && escape_.size() > 1 && !is_inside_text)) {
        escape_.clear();
        continue;
      }
      escape(c);
      bytes.remove_prefix(1);
      continue;
    }
    const auto end = std::find_if(bytes.begin(), bytes.end(), is_control);
    if (const auto n = static_cast<std::size_t>(end - bytes.begin()); n > 0) {
      print(bytes.substr(0, n), sink);
      bytes.remove_prefix(n);
      continue;
    }
    control(bytes[0], sink);
    bytes.remove_prefix(1);
  }
  // With nested bars the cursor rests at the first one. Rows above it will not be rewritten.
  if (went_up_ && at_ > 0) {
    give_rows(at_, sink);
    at_ = 0;
  }
  while (rows_.size() > 1 && at_ + 1 < rows_.size() && is_blank(rows_.back().text)) rows_.pop_back();
}

void TerminalLines::print(std::string_view text, const Sink& sink) {
  Row* row = &rows_[at_];
  went_up_ = false;
  if (at_start_) {
    const bool was_blank = is_blank(row->text);
    row->is_rewritten = row->is_rewritten || !was_blank;
    if (!row->text.empty()) row->was_wiped = was_blank;
    if (at_ == 0 && gave_part_ && row->is_bar) {
      gave_part_ = false;
      replaces_part_ = true;
    }
    row->text = style_;
    at_start_ = false;
  }
  while (row->text.size() + text.size() > kLimit) {
    const std::size_t room = kLimit - row->text.size();
    std::string_view part = cut_text(text, room);
    if (part.empty()) part = text.substr(0, room);  // not UTF-8
    row->text += part;
    text.remove_prefix(part.size());
    give_rows(at_, sink);
    give(rows_[0], false, sink);
    rows_.resize(1);
    rows_[0] = Row();
    rows_[0].text = style_;
    at_ = 0;
    row = &rows_[0];
  }
  row->text += text;
}

void TerminalLines::control(char c, const Sink& sink) {
  Row& row = rows_[at_];
  if (c != kEscape) went_up_ = false;
  switch (c) {
    case '\n':
      new_line(sink);
      break;
    case '\r':
      // A second \r: a bar that was wiped is drawn again; what follows is no message.
      if (at_start_ && is_blank(row.text)) row.text.clear();
      row.is_bar = true;
      at_start_ = true;
      break;
    case '\b':
      row.is_bar = true;
      if (!at_start_) drop_last_character(row.text);
      break;
    case '\t':
    case '\a':
      print(std::string_view(&c, 1), sink);
      break;
    case kEscape:
      escape_ = c;
      break;
    default:
      break;
  }
}

// Forms: ESC [ ... LETTER; texts; ESC ( X; else two bytes.
void TerminalLines::escape(char c) {
  escape_ += c;
  if (escape_.size() == 2) {
    if (c != '[' && c != ']' && c != 'P' && c != '(' && c != ')') escape_.clear();
    return;
  }
  if (is_text_sequence(escape_)) {
    if (c == '\a' || (c == '\\' && escape_[escape_.size() - 2] == kEscape) || escape_.size() > kLongestEscape) {
      escape_.clear();
    }
  } else if (escape_[1] != '[' || (c >= 0x40 && c <= 0x7e) || escape_.size() > kLongestEscape) {
    finish_escape();
    escape_.clear();
  }
}

void TerminalLines::finish_escape() {
  if (escape_[1] != '[') return;
  Row& row = rows_[at_];
  switch (escape_.back()) {
    case 'm':
      color(escape_);
      break;
    case 'A':
    case 'F':
      moves_up_ = went_up_ = true;
      at_ -= std::min(at_, count_of(escape_));
      if (escape_.back() == 'F') at_start_ = true;
      break;
    case 'B':
    case 'E':
      at_ = std::min(rows_.size() - 1, at_ + count_of(escape_));
      if (escape_.back() == 'E') at_start_ = true;
      break;
    case 'G':
      if (count_of(escape_) == 1) {
        row.is_bar = true;
        at_start_ = true;
      }
      break;
    case 'K':
      // Clearing to the end of the line has no effect if the cursor is behind the text.
      if (!at_start_ && (escape_ == "\033[K" || escape_ == "\033[0K")) break;
      row.is_rewritten = row.is_rewritten || !is_blank(row.text);
      row.text.clear();
      break;
    default:
      break;
  }
}

void TerminalLines::color(const std::string& sequence) {
  if (sequence == "\033[m" || sequence == kReset) {
    style_.clear();
  } else if (starts_with(sequence, "\033[0;") || style_.size() + sequence.size() > kLongestStyle) {
    style_ = sequence;
  } else {
    style_ += sequence;
  }
  if (!at_start_) rows_[at_].text += sequence;
}

// A finished bar is passed on at once, unless this stream moves back up to finished bars.
void TerminalLines::new_line(const Sink& sink) {
  if (!moves_up_ || !rows_[at_].is_bar || rows_[at_].was_wiped) {
    give_rows(at_ + 1, sink);
    at_ = 0;
  } else if (++at_ == rows_.size()) {
    rows_.emplace_back();
    if (rows_.size() > kMaxRows) {
      give_rows(1, sink);
      --at_;
    }
  }
  at_start_ = true;
}

void TerminalLines::give(const Row& row, bool is_ended, const Sink& sink) {
  const std::string text = with_colors_off(row.text);
  Line line;
  line.text = text;
  line.is_ended = is_ended;
  line.is_continued = gave_part_;
  line.replaces_part = replaces_part_;
  sink(line);
  gave_part_ = !is_ended;
  replaces_part_ = false;
}

// Passes on the first `n` rows. A bar that its program wiped leaves nothing.
void TerminalLines::give_rows(std::size_t n, const Sink& sink) {
  for (std::size_t i = 0; i < n; ++i) {
    if (!rows_[i].is_rewritten || !is_blank(rows_[i].text) || replaces_part_) give(rows_[i], true, sink);
  }
  rows_.erase(rows_.begin(), rows_.begin() + static_cast<std::ptrdiff_t>(n));
  if (rows_.empty()) rows_.emplace_back();
}

void TerminalLines::give_unfinished(const Sink& sink) {
  if (rows_.size() > 1 || rows_[0].is_bar || is_blank(rows_[0].text)) return;
  give(rows_[0], false, sink);
  rows_[0].text.clear();
  at_start_ = true;
}

void TerminalLines::end(const Sink& sink) {
  while (rows_.size() > 1 && is_blank(rows_.back().text)) rows_.pop_back();
  if (rows_.size() == 1 && is_blank(rows_[0].text) && !gave_part_) {
    rows_[0] = Row();
  } else {
    give_rows(rows_.size(), sink);
  }
  at_ = 0;
  at_start_ = true;
}

std::vector<std::string> TerminalLines::bars() const {
  std::vector<std::string> out;
  for (const Row& row : rows_) {
    if ((row.is_bar || rows_.size() > 1) && !is_blank(row.text)) out.push_back(with_colors_off(row.text));
  }
  return out;
}

}  // namespace drun::launcher
