// Pieces of HTML and SVG text. Pure.
#pragma once

#include <string>
#include <string_view>

namespace drun::cli {

// Escapes text and quoted attribute values. Control characters become spaces.
std::string escape(std::string_view text);
// A coordinate with at most one decimal, whatever the locale.
std::string coordinate(double value);
// " NAME='VALUE'", the value escaped.
std::string attribute(std::string_view name, std::string_view value);
std::string attribute(std::string_view name, double value);
// <text>: `text` is escaped, `attributes` are as they are.
std::string svg_text(double x, double y, std::string_view text, std::string_view attributes = "");
// Shown while the pointer is over the enclosing element.
std::string hover_title(std::string_view text);
// Capitalizes the first letter, as at the beginning of a sentence. Does not escape.
std::string capital(std::string text);
// A label on a background in the color of `state`, a CSS class.
std::string badge(std::string_view state, std::string_view text);
// time_text() with the micro sign.
std::string time_markup(double seconds);

}  // namespace drun::cli
