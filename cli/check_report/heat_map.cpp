#include "cli/check_report/heat_map.h"

#include <algorithm>
#include <cmath>

#include "cli/check_report/markup.h"

namespace drun::cli {

namespace {

constexpr double kMapWidth = 640;    // the cells of a large map
constexpr std::size_t kLabel = 18;   // characters
constexpr double kSmallest = 0.78;   // minimum scale of the drawing
constexpr double kCharacter = 0.56;  // width of one, in font sizes

std::string cut(const std::string& name) {
  if (name.size() <= kLabel) return name;
  return name.substr(0, 8) + "\u2026" + name.substr(name.size() - 9);
}

// A sign that doesn't depend on color: a dot, a stroke, a cross, a bar.
std::string mark(Heat heat, double x, double y, double w, double h) {
  const double in = std::min(w, h) * 0.25;
  const std::string left = coordinate(x + in), right = coordinate(x + w - in);
  const std::string top = coordinate(y + in), bottom = coordinate(y + h - in), middle = coordinate(y + h / 2);
  switch (heat) {
    case Heat::kBelow:
      return "<circle class='m'" + attribute("cx", x + w / 2) + attribute("cy", y + h / 2) +
             attribute("r", std::max(0.8, std::min(w, h) * 0.12)) + "/>";
    case Heat::kBad:
      return "<path class='m' d='M" + left + " " + bottom + "L" + right + " " + top + "'/>";
    case Heat::kAwful:
      return "<path class='m' d='M" + left + " " + bottom + "L" + right + " " + top + "M" + left + " " + top + "L" +
             right + " " + bottom + "'/>";
    case Heat::kFailed:
      return "<path class='m' d='M" + left + " " + middle + "H" + right + "'/>";
    default:
      return "";
  }
}

struct Shape {
  double cell_w = 0, cell_h = 0, font = 0;
  double left = 0, top = 0;  // where the cells begin
  bool figures = false, upright = false;
  int every = 1;  // every n-th host has a label
};

Shape shape_of(const HeatMap& map, std::size_t longest) {
  Shape s;
  const int n = map.matrix->n_hosts;
  s.figures = n <= kFiguresTo;
  if (s.figures) {
    s.cell_w = n <= 8 ? 62 : 46;
    s.cell_h = n <= 8 ? 36 : 30;
    s.font = n <= 8 ? 13 : 11;
  } else {
    s.cell_w = s.cell_h = std::clamp(kMapWidth / n, 3.0, 18.0);
    s.font = std::clamp(s.cell_h * 0.88, 8.0, 11.0);
    s.every = static_cast<int>(std::ceil(s.font / s.cell_h));
  }
  const double width = static_cast<double>(longest) * s.font * kCharacter;
  s.upright = !s.figures || width > s.cell_w - 6;
  s.left = width + 12;
  s.top = s.upright ? width * (s.figures ? 0.72 : 1) + 14 : s.font + 14;
  return s;
}

std::string labels(const HeatMap& map, const Shape& s) {
  std::string out;
  for (std::size_t i = 0; i < map.names.size(); i += static_cast<std::size_t>(s.every)) {
    const double at = static_cast<double>(i);
    const std::string name = cut(map.names[i]);
    out += svg_text(s.left - 7, s.top + (at + 0.5) * s.cell_h + s.font * 0.35, name, " class='l' text-anchor='end'");
    const double x = s.left + (at + 0.5) * s.cell_w;
    if (!s.upright) {
      out += svg_text(x, s.top - 8, name, " class='l' text-anchor='middle'");
      continue;
    }
    const double foot = x + (s.figures ? 0 : s.font * 0.35);
    out += svg_text(foot, s.top - 7, name,
                    " class='l' transform='rotate(" + std::string(s.figures ? "-45 " : "-90 ") + coordinate(foot) +
                        " " + coordinate(s.top - 7) + ")'");
  }
  return out;
}

}  // namespace

const char* heat_class(Heat heat) {
  switch (heat) {
    case Heat::kBetter:
      return "hb";
    case Heat::kNormal:
      return "h1";
    case Heat::kBelow:
      return "h2";
    case Heat::kBad:
      return "h3";
    case Heat::kAwful:
      return "h4";
    case Heat::kFailed:
      return "h5";
    case Heat::kNone:
      break;
  }
  return "h0";
}

std::string heat_map_svg(const HeatMap& map) {
  const Matrix& matrix = *map.matrix;
  std::size_t longest = 4;
  for (const auto& name : map.names) longest = std::max(longest, std::min(name.size(), kLabel));
  const Shape s = shape_of(map, longest);
  const double cells_w = s.cell_w * matrix.n_hosts, cells_h = s.cell_h * matrix.n_hosts;
  // Slanted labels lean over the right edge.
  const double lean = s.upright && s.figures ? s.top * 0.9 : 8;
  const double width = s.left + cells_w + lean, height = s.top + cells_h + 8;
  std::string out = "<svg class='map' role='img'" + attribute("aria-label", map.label) +
                    attribute("viewBox", "0 0 " + coordinate(width) + " " + coordinate(height)) +
                    attribute("width", width) + attribute("font-size", s.font) +
                    // Shrinks a little if space is short; below that the page scrolls.
                    attribute("style", "min-width:" + coordinate(kSmallest * width) + "px") + ">";
  out += "<rect class='h0'" + attribute("x", s.left) + attribute("y", s.top) + attribute("width", cells_w) +
         attribute("height", cells_h) + "/>";
  out += labels(map, s);
  const double gap = s.cell_w >= 8 ? 1 : 0;
  for (int from = 0; from < matrix.n_hosts; ++from) {
    for (int to = 0; to < matrix.n_hosts; ++to) {
      const double x = s.left + to * s.cell_w, y = s.top + from * s.cell_h;
      const std::string box = attribute("x", x + gap / 2) + attribute("y", y + gap / 2) +
                              attribute("width", s.cell_w - gap) + attribute("height", s.cell_h - gap);
      if (from == to) {
        out += "<rect class='d'" + box + "/>";
        continue;
      }
      const Heat heat = map.heat(matrix, from, to);
      const Cell& cell = matrix.at(from, to);
      const double middle = x + s.cell_w / 2, line = y + s.cell_h / 2 + s.font * 0.36;
      if (heat == Heat::kNone) {
        if (s.figures) out += svg_text(middle, line, "\u2013", " class='n' text-anchor='middle'");
        continue;
      }
      const auto& a = map.names[static_cast<std::size_t>(from)];
      const auto& b = map.names[static_cast<std::size_t>(to)];
      const std::string pair = map.symmetric ? a + " and " + b : a + " to " + b;
      out += "<g><rect class='c " + std::string(heat_class(heat)) + "'" + box + "/>";
      if (s.figures) {
        out += svg_text(middle, line, cell.value > 0 ? map.unit.figure(cell.value) : "failed",
                        " class='v " + std::string(heat_class(heat)) + "' text-anchor='middle'");
      } else {
        out += mark(heat, x, y, s.cell_w, s.cell_h);
      }
      out += hover_title(pair + ": " + (cell.value > 0 ? map.unit.text(cell.value) : cell.error)) + "</g>";
    }
  }
  return out + "</svg>";
}

std::string heat_legend(const Matrix& matrix, Heat (*heat)(const Matrix&, int, int), const char* better,
                        const char* worse) {
  bool seen[8] = {};
  for (int from = 0; from < matrix.n_hosts; ++from) {
    for (int to = 0; to < matrix.n_hosts; ++to) seen[static_cast<int>(heat(matrix, from, to))] = true;
  }
  const std::string w = std::string(" times ") + worse;
  const struct {
    Heat heat;
    std::string words;
  } entries[] = {{Heat::kBetter, std::string("more than a quarter ") + better},
                 {Heat::kNormal, "about the median"},
                 {Heat::kBelow, "1.25 to 2" + w},
                 {Heat::kBad, "2 to 5" + w},
                 {Heat::kAwful, "more than 5" + w},
                 {Heat::kFailed, "failed"}};
  std::string out = "<ul class='legend'>";
  for (const auto& entry : entries) {
    if (!seen[static_cast<int>(entry.heat)]) continue;
    out += "<li><svg aria-hidden='true' width='18' height='18' viewBox='0 0 18 18'><rect class='" +
           std::string(heat_class(entry.heat)) + "' width='18' height='18' rx='2'/>" + mark(entry.heat, 0, 0, 18, 18) +
           "</svg>" + escape(entry.words) + "</li>";
  }
  return out + "</ul>";
}

}  // namespace drun::cli
