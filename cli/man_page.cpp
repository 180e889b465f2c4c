#include "cli/man_page.h"

#include <cctype>

#include "base/text.h"

namespace drun::cli {
namespace {

constexpr std::string_view kVersionMark = "@VERSION@";

std::string escape(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '\\':
        out += "\\e";
        break;
      case '-':
        out += "\\-";
        break;
      case '\'':
        out += "\\(aq";
        break;
      case '`':
        out += "\\(ga";
        break;
      case '^':
        out += "\\(ha";
        break;
      case '~':
        out += "\\(ti";
        break;
      default:
        out += c;
    }
  }
  return out;
}

std::string bold(std::string_view text) { return "\\fB" + escape(text) + "\\fR"; }
std::string italic(std::string_view text) { return "\\fI" + escape(text) + "\\fR"; }

// The length of the option with which `text` begins, "--bind-to" or "-x"; 0: none.
std::size_t option_length(std::string_view text) {
  const bool is_long = starts_with(text, "--");
  std::size_t n = is_long ? 2 : 1;
  if (!starts_with(text, "-") || n >= text.size() || std::isalpha(static_cast<unsigned char>(text[n])) == 0) return 0;
  while (n < text.size() && (std::isalnum(static_cast<unsigned char>(text[n])) != 0 || (is_long && text[n] == '-')))
    ++n;
  return n;
}

// Words that the user types as they are, "ssh|openssh", are bold, names of values italic.
std::string value_text(const OptionRow& row) {
  std::string out;
  const auto words = choices(row);
  for (const auto part : split(row.value, '|')) {
    bool is_choice = false;
    for (const auto& word : words) is_choice |= word == part;
    out += (out.empty() ? "" : "|") + (is_choice ? bold(part) : italic(part));
  }
  return out;
}

std::string tag(const OptionRow& row) {
  std::string out;
  for (const auto& name : row.names) out += (out.empty() ? "" : ", ") + bold(name);
  if (row.value.empty()) return out;
  return row.optional_value ? out + "[=" + value_text(row) + "]" : out + " " + value_text(row);
}

}  // namespace

std::string roff(std::string_view text) {
  std::string out;
  if (!text.empty() && (text.front() == '.' || text.front() == '\'')) out = "\\&";
  bool at_word = true;
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t n = at_word ? option_length(text.substr(i)) : 0;
    out += n > 0 ? bold(text.substr(i, n)) : escape(text.substr(i, 1));
    at_word = n == 0 && (text[i] == ' ' || text[i] == '(');
    i += n > 0 ? n : 1;
  }
  return out;
}

std::string roff_options(const std::vector<OptionRow>& rows) {
  std::string out, heading;
  for (const auto& row : rows) {
    if (row.heading != heading) out += ".SS " + row.heading + "\n";
    heading = row.heading;
    out += ".TP\n" + tag(row) + "\n" + roff(row.text) + "\n";
  }
  return out;
}

std::string man_page(std::string_view page, const std::string& name, const std::string& summary,
                     const std::vector<OptionRow>& rows, const std::string& version) {
  std::string out;
  while (!page.empty()) {
    const auto end = page.find('\n');
    std::string line(page.substr(0, end));
    page.remove_prefix(end == std::string_view::npos ? page.size() : end + 1);
    if (const auto at = line.find(kVersionMark); at != std::string::npos) {
      line.replace(at, kVersionMark.size(), version);
    }
    if (line == kSummaryMark) {
      out += escape(name) + " \\- " + roff(summary) + "\n";
    } else if (line == kOptionsMark) {
      out += roff_options(rows);
    } else {
      out += line + "\n";
    }
  }
  return out;
}

}  // namespace drun::cli
