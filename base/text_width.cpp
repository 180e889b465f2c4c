#include "base/text_width.h"

#include <locale.h>
#include <wchar.h>

#include <algorithm>

namespace drun {

namespace {

// Sets this thread's locale to UTF-8 for wcwidth(), independent of the locale of the program and other threads.
class Utf8Locale {
 public:
  Utf8Locale() : before_(::uselocale(locale() == nullptr ? static_cast<locale_t>(nullptr) : locale())) {}
  ~Utf8Locale() { ::uselocale(before_); }
  Utf8Locale(const Utf8Locale&) = delete;
  Utf8Locale& operator=(const Utf8Locale&) = delete;
  static bool works() { return locale() != nullptr; }

 private:
  static locale_t locale() {
    static const locale_t utf8 = ::newlocale(LC_CTYPE_MASK, "C.UTF-8", nullptr);
    return utf8;
  }
  locale_t before_;
};

// The smallest unit of text for a terminal: a character, an escape sequence or a control character.
struct Unit {
  enum class Kind { kCharacter, kEscape, kControl };
  Kind kind = Kind::kCharacter;
  std::size_t n_bytes = 1;
  std::size_t columns = 1;
};

Unit escape_unit(std::string_view text) {
  Unit unit{Unit::Kind::kEscape, std::min<std::size_t>(2, text.size()), 0};
  if (text.size() < 2 || text[1] != '[') return unit;
  while (unit.n_bytes < text.size()) {
    const auto c = static_cast<unsigned char>(text[unit.n_bytes++]);
    if (c >= 0x40 && c <= 0x7e) break;
  }
  return unit;
}

// A byte that is not valid UTF-8 counts as a character of one column.
Unit next_unit(std::string_view text) {
  const auto first = static_cast<unsigned char>(text[0]);
  if (first == 0x1b) return escape_unit(text);
  if (first < 0x20 || first == 0x7f) return {Unit::Kind::kControl, 1, 0};
  if (first < 0x80) return {};
  const std::size_t n = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : first >= 0xc0 ? 2 : 1;
  if (n == 1 || n > text.size()) return {};
  auto code = static_cast<char32_t>(first & (0x7fu >> n));
  for (std::size_t i = 1; i < n; ++i) {
    const auto next = static_cast<unsigned char>(text[i]);
    if ((next & 0xc0) != 0x80) return {};
    code = (code << 6) | (next & 0x3fu);
  }
  const int columns = Utf8Locale::works() ? ::wcwidth(static_cast<wchar_t>(code)) : 1;
  return {Unit::Kind::kCharacter, n, columns < 0 ? std::size_t{1} : static_cast<std::size_t>(columns)};
}

}  // namespace

std::size_t text_width(std::string_view text) {
  const Utf8Locale utf8;
  std::size_t columns = 0;
  while (!text.empty()) {
    const Unit unit = next_unit(text);
    columns += unit.columns;
    text.remove_prefix(unit.n_bytes);
  }
  return columns;
}

std::string without_escapes(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const auto at = std::min(text.find('\033'), text.size());
    out += text.substr(0, at);
    text.remove_prefix(at);
    if (!text.empty()) text.remove_prefix(escape_unit(text).n_bytes);
  }
  return out;
}

std::string cut_to_width(std::string_view text, std::size_t columns) {
  const Utf8Locale utf8;
  std::string out;
  bool is_full = false;
  while (!text.empty()) {
    Unit unit = next_unit(text);
    std::string_view bytes = text.substr(0, unit.n_bytes);
    text.remove_prefix(unit.n_bytes);
    if (unit.kind == Unit::Kind::kControl) {
      if (bytes != "\t") continue;
      bytes = " ";
      unit.columns = 1;
    }
    is_full = is_full || unit.columns > columns;
    if (unit.kind != Unit::Kind::kEscape && is_full) continue;
    out += bytes;
    columns -= unit.columns;
  }
  return out;
}

std::vector<std::string> wrap_text(std::string_view text, std::size_t columns) {
  columns = std::max<std::size_t>(columns, 1);
  std::vector<std::string> rows;
  const std::size_t indent_bytes = std::min(text.find_first_not_of(' '), text.size());
  const std::string indent(std::min(indent_bytes, columns / 2), ' ');
  text.remove_prefix(indent_bytes);
  std::string row = indent;
  std::size_t used = indent.size();
  bool has_word = false;
  const auto next_row = [&] {
    rows.push_back(std::move(row));
    row = indent;
    used = indent.size();
    has_word = false;
  };
  while (!text.empty()) {
    // A word and the spaces before it, which count only within a row.
    const std::size_t spaces = std::min(text.find_first_not_of(' '), text.size());
    const std::string_view word = text.substr(spaces, text.find(' ', spaces) - spaces);
    const std::size_t width = text_width(word);
    if (has_word && used + spaces + width > columns) {
      next_row();
    } else if (has_word) {
      row.append(spaces, ' ');
      used += spaces;
    }
    text.remove_prefix(spaces + word.size());
    const Utf8Locale utf8;
    for (std::string_view left = word; !left.empty();) {
      const Unit unit = next_unit(left);
      if (has_word && used + unit.columns > columns) next_row();
      row += left.substr(0, unit.n_bytes);
      used += unit.columns;
      has_word = true;
      left.remove_prefix(unit.n_bytes);
    }
  }
  if (has_word || rows.empty()) rows.push_back(std::move(row));
  return rows;
}

}  // namespace drun
