#include "cli/check_report/topology.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numbers>

#include "base/text.h"
#include "cli/check_report/heat_map.h"
#include "cli/check_report/markup.h"

namespace drun::cli {

namespace {

using check::Verdict;

constexpr int kRadialFrom = 17;     // hosts; with fewer, names are level
constexpr int kRatesTo = 4;         // hosts whose links are labeled
constexpr std::size_t kLabel = 20;  // characters

struct Point {
  double x = 0, y = 0;
};

// The network of the host's address, for example "10.0.0.0/24"; "" = none.
std::string network_of(const check::CheckedHost& host) {
  if (!host.choice || host.choice->address.bytes.empty()) return "";
  netdetect::Address network = host.choice->address;
  if (network.prefix_length <= 0) return "";
  for (std::size_t i = 0; i < network.bytes.size(); ++i) {
    const int keep = std::clamp(network.prefix_length - static_cast<int>(i) * 8, 0, 8);
    network.bytes[i] = static_cast<char>(static_cast<unsigned char>(network.bytes[i]) & (0xFF00u >> keep));
  }
  return network.text() + "/" + std::to_string(network.prefix_length);
}

std::string group_letter(std::size_t i) {
  return i < 26 ? std::string(1, static_cast<char>('A' + i)) : std::to_string(i + 1);
}

struct Group {
  std::string network;  // "" = hosts without an address
  std::vector<int> hosts;
  double label_angle = 0;
};

// In the order of each group's first host; hosts without an address come last.
std::vector<Group> group_hosts(const check::CheckResult& result) {
  std::vector<Group> out;
  std::map<std::string, std::size_t> known;
  for (std::size_t i = 0; i < result.hosts.size(); ++i) {
    const std::string network = network_of(result.hosts[i]);
    const auto [at, fresh] = known.emplace(network, out.size());
    if (fresh) out.push_back({network, {}, 0});
    out[at->second].hosts.push_back(static_cast<int>(i));
  }
  std::stable_partition(out.begin(), out.end(), [](const Group& g) { return !g.network.empty(); });
  return out;
}

class Topology {
 public:
  Topology(const check::CheckResult& result, const Figures& figures)
      : result_(result),
        bandwidth_(figures.bandwidth),
        unit_(figures.rate),
        groups_(group_hosts(result)),
        names_(short_names(result)) {
    place();
  }

  std::string markup() {
    std::string body = links() + nodes();
    std::string out = "<svg class='topology' role='img' aria-label='hosts and the links between them'" +
                      attribute("viewBox", coordinate(left_) + " " + coordinate(top_) + " " +
                                               coordinate(right_ - left_) + " " + coordinate(bottom_ - top_)) +
                      attribute("width", right_ - left_) + attribute("height", bottom_ - top_) + ">" + body + "</svg>";
    return out + legend();
  }

 private:
  int n() const { return static_cast<int>(result_.hosts.size()); }
  // True if the hosts are drawn by network. False if there is only one network, even if some hosts have no address.
  bool grouped() const {
    return std::count_if(groups_.begin(), groups_.end(), [](const Group& g) { return !g.network.empty(); }) > 1;
  }
  bool radial() const { return n() >= kRadialFrom; }

  void include(double x, double y) {
    left_ = std::min(left_, x);
    right_ = std::max(right_, x);
    top_ = std::min(top_, y);
    bottom_ = std::max(bottom_, y);
  }

  // Each network's sign takes a place on the circle before its hosts.
  void place() {
    const double places = static_cast<double>(n()) + (grouped() ? static_cast<double>(groups_.size()) : 0);
    radius_ = std::clamp(places * 5.5, n() <= 4 ? 150.0 : 210.0, 420.0);
    node_ = std::clamp(radius_ * std::numbers::pi / places * 0.75, 3.0, 13.0);
    angles_.resize(result_.hosts.size());
    double at = 0;
    for (auto& group : groups_) {
      if (grouped()) group.label_angle = angle(at++, places);
      for (const int host : group.hosts) angles_[static_cast<std::size_t>(host)] = angle(at++, places);
    }
  }

  // Two hosts stand side by side; more begin at the top.
  static double angle(double at, double places) {
    const double first = places <= 2 ? std::numbers::pi : -std::numbers::pi / 2;
    return first + 2 * std::numbers::pi * at / places;
  }
  Point on_circle(double angle, double radius) const { return {radius * std::cos(angle), radius * std::sin(angle)}; }
  Point at(int host) const { return on_circle(angles_[static_cast<std::size_t>(host)], radius_); }

  struct Line {
    int a = 0, b = 0;
    Heat heat = Heat::kNone;
  };

  std::vector<Line> lines() const {
    std::vector<Line> out;
    for (int a = 0; a < n(); ++a) {
      for (int b = a + 1; b < n(); ++b) {
        const Heat heat = std::max(bandwidth_heat(bandwidth_, a, b), bandwidth_heat(bandwidth_, b, a));
        if (heat != Heat::kNone) out.push_back({a, b, heat});
      }
    }
    // The worst are drawn last, on top.
    std::stable_sort(out.begin(), out.end(), [](const Line& x, const Line& y) { return x.heat < y.heat; });
    return out;
  }

  std::string direction_text(int from, int to) const {
    const Cell& cell = bandwidth_.at(from, to);
    const std::string what = cell.value > 0 ? unit_.text(cell.value) : cell.error.empty() ? "not measured" : cell.error;
    return name(from) + " to " + name(to) + ": " + what;
  }
  const std::string& name(int host) const { return names_[static_cast<std::size_t>(host)]; }

  std::string links() const {
    std::string out = "<g class='links" + std::string(n() > 24 ? " many" : "") + "'>", rates;
    for (const Line& line : lines()) {
      const Point a = at(line.a), b = at(line.b);
      out += "<line class='k " + std::string(heat_class(line.heat)) + "'" + attribute("x1", a.x) +
             attribute("y1", a.y) + attribute("x2", b.x) + attribute("y2", b.y) + ">" +
             hover_title(direction_text(line.a, line.b) + "\n" + direction_text(line.b, line.a)) + "</line>";
      if (n() <= kRatesTo) rates += rate_label(line, a, b);
    }
    return out + "</g>" + rates;
  }

  // Placed nearer to one end, so that labels of crossing links don't overlap.
  std::string rate_label(const Line& line, const Point& a, const Point& b) const {
    const double along = n() == 2 ? 0.5 : 0.36;
    const Cell& there = bandwidth_.at(line.a, line.b);
    const Cell& back = bandwidth_.at(line.b, line.a);
    double worse = there.value > 0 && back.value > 0 ? std::min(there.value, back.value) : 0;
    const std::string text = worse > 0 ? unit_.text(worse) : "failed";
    const double x = a.x + (b.x - a.x) * along, y = a.y + (b.y - a.y) * along;
    const double width = static_cast<double>(text.size()) * 7 + 10;
    return "<rect class='plate'" + attribute("x", x - width / 2) + attribute("y", y - 10) + attribute("width", width) +
           attribute("height", 20.0) + " rx='4'/>" + svg_text(x, y + 4.5, text, " class='rate' text-anchor='middle'");
  }

  std::string nodes() {
    std::string out;
    for (std::size_t i = 0; grouped() && i < groups_.size(); ++i) {
      const Point p = on_circle(groups_[i].label_angle, radius_);
      const double half = std::max(node_, 8.0);
      out += "<g class='net'><rect" + attribute("x", p.x - half) + attribute("y", p.y - half) +
             attribute("width", half * 2) + attribute("height", half * 2) + " rx='3'/>" +
             svg_text(p.x, p.y + 4, groups_[i].network.empty() ? "?" : group_letter(i),
                      " text-anchor='middle' font-size='11'") +
             hover_title(network_words(groups_[i])) + "</g>";
      include(p.x - half - 6, p.y - half - 6);
      include(p.x + half + 6, p.y + half + 6);
    }
    for (int i = 0; i < n(); ++i) out += node(i);
    return out;
  }

  std::string node(int i) {
    const auto& host = result_.hosts[static_cast<std::size_t>(i)];
    const Point p = at(i);
    const char* state = host.verdict == Verdict::kReady ? "ok" : host.verdict == Verdict::kWarnings ? "warn" : "bad";
    std::string out = "<g class='host " + std::string(state) + "'>";
    if (host.verdict != Verdict::kReady) {
      out += "<circle class='halo'" + attribute("cx", p.x) + attribute("cy", p.y) + attribute("r", node_ + 5) + "/>";
    }
    out += "<circle" + attribute("cx", p.x) + attribute("cy", p.y) + attribute("r", node_) + "/>";
    const double font = node_ * 1.5;
    if (host.verdict != Verdict::kReady && node_ >= 4) {
      out += svg_text(p.x, p.y + font * 0.36, host.verdict == Verdict::kWarnings ? "!" : "\u00d7",
                      " class='sign' text-anchor='middle'" + attribute("font-size", font));
    }
    out += host_label(i, p);
    std::string words = host.name + ": " + verdict_text(host.verdict);
    if (host.choice) words += "\n" + host.choice->interface + " " + host.choice->address.text();
    return out + hover_title(words) + "</g>";
  }

  std::string host_label(int i, const Point& p) {
    const double angle = angles_[static_cast<std::size_t>(i)];
    std::string text = name(i);
    if (text.size() > kLabel) text = text.substr(0, 9) + "\u2026" + text.substr(text.size() - 10);
    const double away = node_ + 12, font = radial() ? std::clamp(node_ * 1.5, 8.0, 12.0) : 13;
    const Point foot = on_circle(angle, radius_ + away);
    const double length = static_cast<double>(std::min(text.size(), kLabel)) * font * 0.64;
    const double c = std::cos(angle), s = std::sin(angle);
    const bool leftward = c < -0.01;
    const std::string size = attribute("font-size", font);
    if (radial()) {
      const double degrees = angle * 180 / std::numbers::pi + (leftward ? 180 : 0);
      include(foot.x + c * length - font * 0.6, foot.y + s * length - font * 0.6);
      include(foot.x + c * length + font * 0.6, foot.y + s * length + font * 0.6);
      return svg_text(foot.x, foot.y + font * 0.35, text,
                      size + " text-anchor='" + (leftward ? "end" : "start") + "' transform='rotate(" +
                          coordinate(degrees) + " " + coordinate(foot.x) + " " + coordinate(foot.y) + ")'");
    }
    const bool middle = std::abs(c) < 0.25;
    const double x = middle ? foot.x - length / 2 : leftward ? foot.x - length : foot.x;
    const double y = foot.y + font * 0.35 + s * font * 0.6;
    include(std::min(p.x - node_ - 8, x - 4), std::min(p.y - node_ - 8, y - font - 4));
    include(std::max(p.x + node_ + 8, x + length + 4), std::max(p.y + node_ + 8, y + 8));
    return svg_text(foot.x, y, text, size + " text-anchor='" + (middle ? "middle" : leftward ? "end" : "start") + "'");
  }

  static std::string network_words(const Group& group) {
    return (group.network.empty() ? "no address was chosen" : group.network) + ": " +
           plural(group.hosts.size(), "host");
  }

  std::string legend() const {
    std::string out = "<ul class='legend'>";
    const struct {
      Heat heat;
      const char* words;
    } entries[] = {{Heat::kBetter, "more than a quarter faster"}, {Heat::kNormal, "about the median"},
                   {Heat::kBelow, "1.25 to 2 times slower"},      {Heat::kBad, "2 to 5 times slower"},
                   {Heat::kAwful, "more than 5 times slower"},    {Heat::kFailed, "failed"}};
    const auto drawn = lines();
    for (const auto& entry : entries) {
      if (std::none_of(drawn.begin(), drawn.end(), [&](const Line& l) { return l.heat == entry.heat; })) continue;
      out += "<li><svg aria-hidden='true' width='34' height='12' viewBox='0 0 34 12'><line class='k " +
             std::string(heat_class(entry.heat)) + "' x1='1' y1='6' x2='33' y2='6'/></svg>" + entry.words + "</li>";
    }
    for (std::size_t i = 0; grouped() && i < groups_.size(); ++i) {
      out += "<li><b class='letter'>" + std::string(groups_[i].network.empty() ? "?" : group_letter(i)) + "</b>" +
             escape(network_words(groups_[i])) + "</li>";
    }
    return out + "</ul>";
  }

  const check::CheckResult& result_;
  const Matrix& bandwidth_;
  Unit unit_;
  std::vector<Group> groups_;
  std::vector<std::string> names_;
  std::vector<double> angles_;
  double radius_ = 0, node_ = 0;
  double left_ = 0, right_ = 0, top_ = 0, bottom_ = 0;
};

}  // namespace

std::string topology_markup(const check::CheckResult& result, const Figures& figures) {
  if (result.hosts.size() < 2) return "";
  return Topology(result, figures).markup();
}

}  // namespace drun::cli
