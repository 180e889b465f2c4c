// Pieces of HTML and SVG text. Pure.
#pragma once

#include <string>
#include <string_view>

namespace drun::cli {

// For text and for attribute values in quotes. Control characters become spaces.
std::string escape(std::string_view text);
// A coordinate: at most one digit behind the point, whatever the locale.
std::string coordinate(double value);
// " NAME='VALUE'", the value escaped.
std::string attribute(std::string_view name, std::string_view value);
std::string attribute(std::string_view name, double value);
// <text>: `text` is escaped, `attributes` are as they are.
std::string svg_text(double x, double y, std::string_view text, std::string_view attributes = "");
// What is shown while the pointer is over the element around it.
std::string hover_title(std::string_view text);
// The first letter large, as at the beginning of a sentence; not markup yet.
std::string capital(std::string text);
// A word on a plate of the colour of `state`, a class.
std::string badge(std::string_view state, std::string_view text);
// time_text() with the sign that a page can show.
std::string time_markup(double seconds);

}  // namespace drun::cli
