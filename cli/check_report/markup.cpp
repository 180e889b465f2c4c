#include "cli/check_report/markup.h"

#include <cmath>

#include "base/clean_text.h"
#include "base/units.h"
#include "cli/quantity.h"

namespace drun::cli {

std::string escape(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (const char c : clean_line(text)) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&#39;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

std::string coordinate(double value) {
  const long long tenths = std::llround(value * 10);
  std::string out = tenths < 0 ? "-" : "";
  out += std::to_string(std::llabs(tenths) / 10);
  if (tenths % 10 != 0) out += "." + std::to_string(std::llabs(tenths) % 10);
  return out;
}

std::string attribute(std::string_view name, std::string_view value) {
  return " " + std::string(name) + "='" + escape(value) + "'";
}

std::string attribute(std::string_view name, double value) { return attribute(name, coordinate(value)); }

std::string svg_text(double x, double y, std::string_view text, std::string_view attributes) {
  return "<text" + attribute("x", x) + attribute("y", y) + std::string(attributes) + ">" + escape(text) + "</text>";
}

std::string hover_title(std::string_view text) { return "<title>" + escape(text) + "</title>"; }

std::string capital(std::string text) {
  if (!text.empty() && text[0] >= 'a' && text[0] <= 'z') text[0] = static_cast<char>(text[0] - 'a' + 'A');
  return text;
}

std::string badge(std::string_view state, std::string_view text) {
  return "<span class='badge " + std::string(state) + "'>" + escape(text) + "</span>";
}

std::string time_markup(double seconds) {
  std::string out = time_text(seconds);
  if (out.size() > 3 && out.compare(out.size() - 3, 3, " us") == 0) out.replace(out.size() - 2, 1, "\u00b5");
  return out;
}

}  // namespace drun::cli
