#include "cli/check_report/cost_plot.h"

#include <algorithm>
#include <cmath>

#include "base/units.h"
#include "cli/check_report/markup.h"
#include "cli/quantity.h"

namespace drun::cli {

namespace {

using check::CostPoint;
using check::Prediction;

constexpr double kWidth = 720, kHeight = 380;
constexpr double kLeft = 74, kRight = 34, kTop = 16, kBottom = 52;  // margins

// Powers of ten that enclose the values shown.
struct Axis {
  int low = 0, high = 1;
  double begin = 0, end = 1;  // in the drawing

  void cover(double least, double most) {
    low = static_cast<int>(std::floor(std::log10(least) + 1e-9));
    high = std::max(low + 1, static_cast<int>(std::ceil(std::log10(most) - 1e-9)));
  }
  double at(double value) const { return begin + (std::log10(value) - low) / (high - low) * (end - begin); }
};

std::string superscript(int n) {
  constexpr const char* kDigits[] = {"\u2070", "\u00b9", "\u00b2", "\u00b3", "\u2074",
                                     "\u2075", "\u2076", "\u2077", "\u2078", "\u2079"};
  std::string out;
  for (const char c : std::to_string(n)) out += kDigits[c - '0'];
  return out;
}

// Minutes and hours aren't powers of ten.
std::string second_tick(int power) {
  if (power >= 4) return "10" + superscript(power) + " s";
  if (power >= 0) return digits(std::pow(10, power)) + " s";
  if (power >= -6) return time_markup(std::pow(10, power));
  return digits(std::pow(10, power + 9)) + " ns";
}

class Plot {
 public:
  Plot(const Prediction& prediction, int n_ranks) : p_(prediction), n_ranks_(n_ranks) {
    double least = 0, most = 0;
    const auto see = [&](double seconds) {
      if (seconds <= 0) return;
      least = least == 0 ? seconds : std::min(least, seconds);
      most = std::max(most, seconds);
    };
    double smallest = 0, largest = 0;
    for (const auto& point : p_.curve) {
      if (point.n_bytes == 0) continue;
      const auto n_bytes = static_cast<double>(point.n_bytes);
      smallest = smallest == 0 ? n_bytes : std::min(smallest, n_bytes);
      largest = std::max(largest, n_bytes);
      for (const double seconds : {point.seconds, point.ring_seconds, point.tree_seconds}) see(seconds);
    }
    see(p_.seconds);
    if (p_.n_bytes > 0) largest = std::max(largest, static_cast<double>(p_.n_bytes));
    if (least <= 0 || smallest <= 0) return;
    x_.cover(smallest, largest);
    y_.cover(least, most);
    x_.begin = kLeft;
    x_.end = kWidth - kRight;
    y_.begin = kHeight - kBottom;
    y_.end = kTop;
    drawable_ = true;
  }

  std::string markup() const {
    if (!drawable_) return "";
    return "<div class='scroll'><svg class='plot' role='img' aria-label='predicted time of an allreduce against its "
           "size'" +
           attribute("viewBox", "0 0 " + coordinate(kWidth) + " " + coordinate(kHeight)) + attribute("width", kWidth) +
           attribute("height", kHeight) + ">" + grid() + curve("ring", &CostPoint::ring_seconds) +
           curve("tree", &CostPoint::tree_seconds) + curve("used", &CostPoint::seconds) + points() + asked() +
           "</svg></div>" + legend() + caption();
  }

 private:
  std::string grid() const {
    std::string out = "<g class='grid'>";
    const int every = x_.high - x_.low > 10 ? 2 : 1;
    for (int power = x_.low; power <= x_.high; ++power) {
      const double x = x_.at(std::pow(10, power));
      out += "<line" + attribute("x1", x) + attribute("x2", x) + attribute("y1", y_.begin) + attribute("y2", y_.end) +
             "/>";
      if ((power - x_.low) % every != 0) continue;
      out += svg_text(x, y_.begin + 18, size_text(static_cast<std::size_t>(std::llround(std::pow(10, power)))),
                      " text-anchor='middle'");
    }
    const int every_y = y_.high - y_.low > 10 ? 2 : 1;
    for (int power = y_.low; power <= y_.high; ++power) {
      const double y = y_.at(std::pow(10, power));
      out += "<line" + attribute("x1", x_.begin) + attribute("x2", x_.end) + attribute("y1", y) + attribute("y2", y) +
             "/>";
      if ((power - y_.low) % every_y != 0) continue;
      out += svg_text(x_.begin - 8, y + 4, second_tick(power), " text-anchor='end'");
    }
    out += "</g><g class='axis'>" +
           svg_text((x_.begin + x_.end) / 2, kHeight - 10, "size of the gradients", " text-anchor='middle'");
    const double middle = (y_.begin + y_.end) / 2;
    return out +
           svg_text(16, middle, "time of one allreduce",
                    " class='up' text-anchor='middle' transform='rotate(-90 16 " + coordinate(middle) + ")'") +
           "</g>";
  }

  std::string curve(const char* name, double CostPoint::*seconds) const {
    std::string path;
    for (const auto& point : p_.curve) {
      if (point.n_bytes == 0 || point.*seconds <= 0) continue;
      path += (path.empty() ? "M" : "L") + coordinate(x_.at(static_cast<double>(point.n_bytes))) + " " +
              coordinate(y_.at(point.*seconds));
    }
    return path.empty() ? "" : "<path class='curve " + std::string(name) + "' d='" + path + "'/>";
  }

  // Invisible circles, larger than the points, so that the pointer finds them.
  std::string points() const {
    std::string out;
    for (const auto& point : p_.curve) {
      if (point.n_bytes == 0 || point.seconds <= 0) continue;
      std::string words = size_text(point.n_bytes) + ": " + time_markup(point.seconds);
      if (point.ring_seconds > 0) words += "\nring: " + time_markup(point.ring_seconds);
      if (point.tree_seconds > 0) words += "\ntree: " + time_markup(point.tree_seconds);
      out += "<circle class='spot'" + attribute("cx", x_.at(static_cast<double>(point.n_bytes))) +
             attribute("cy", y_.at(point.seconds)) + " r='9'>" + hover_title(words) + "</circle>";
    }
    return out;
  }

  std::string asked() const {
    if (p_.n_bytes == 0 || p_.seconds <= 0) return "";
    const double x = x_.at(static_cast<double>(p_.n_bytes)), y = y_.at(p_.seconds);
    const std::string words = size_text(p_.n_bytes) + ": " + time_markup(p_.seconds);
    // Above the curve there is room on its left.
    const bool left = x > (x_.begin + x_.end) / 2;
    return "<line class='asked'" + attribute("x1", x) + attribute("x2", x) + attribute("y1", y_.begin) +
           attribute("y2", y) + "/><line class='asked'" + attribute("x1", x_.begin) + attribute("x2", x) +
           attribute("y1", y) + attribute("y2", y) + "/><circle class='asked'" + attribute("cx", x) +
           attribute("cy", y) + " r='5.5'>" + hover_title(words) + "</circle>" +
           svg_text(left ? x - 10 : x + 10, std::max(y - 9, y_.end + 12), words,
                    std::string(" class='asked' text-anchor='") + (left ? "end" : "start") + "'");
  }

  std::string legend() const {
    std::string out = "<ul class='legend'>";
    const struct {
      const char* name;
      const char* words;
      double CostPoint::*seconds;
    } entries[] = {{"used", "libdrun, as it chooses for each size", &CostPoint::seconds},
                   {"ring", "a ring for all sizes", &CostPoint::ring_seconds},
                   {"tree", "trees for all sizes", &CostPoint::tree_seconds}};
    for (const auto& entry : entries) {
      const bool drawn = std::any_of(p_.curve.begin(), p_.curve.end(),
                                     [&](const CostPoint& point) { return point.*entry.seconds > 0; });
      if (!drawn) continue;
      out += "<li><svg aria-hidden='true' width='34' height='12' viewBox='0 0 34 12'><path class='curve " +
             std::string(entry.name) + "' d='M1 6H33'/></svg>" + entry.words + "</li>";
    }
    return out + "</ul>";
  }

  // Explains why the thick line is not always the lowest one.
  std::string caption() const {
    std::string out =
        "The thick line is the time that libdrun takes. It chooses by size alone, the same on every network: recursive "
        "doubling for small sizes, halving and doubling for medium ones (the trees; the faster of the two is drawn), a "
        "ring for large ones. So it may be above the lowest line near the sizes at which it changes.";
    if (n_ranks_ > 1) {
      out += " All lines include the work inside the hosts, where up to " + std::to_string(n_ranks_) +
             " ranks add up their data in memory.";
    }
    return "<p class='soft small below'>" + out + "</p>";
  }

  const Prediction& p_;
  int n_ranks_ = 1;
  Axis x_, y_;
  bool drawable_ = false;
};

}  // namespace

std::string cost_plot_markup(const Prediction& prediction, int n_ranks) { return Plot(prediction, n_ranks).markup(); }

}  // namespace drun::cli
