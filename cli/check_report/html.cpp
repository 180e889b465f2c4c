#include "cli/check_report/report.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <string_view>
#include <vector>

#include "base/text.h"
#include "base/units.h"
#include "cli/check_report/cost_plot.h"
#include "cli/check_report/figures.h"
#include "cli/check_report/heat_map.h"
#include "cli/check_report/html_findings.h"
#include "cli/check_report/html_table.h"
#include "cli/check_report/markup.h"
#include "cli/check_report/style.h"
#include "cli/check_report/topology.h"
#include "cli/check_report/view.h"
#include "cli/quantity.h"
#include "launcher/report/events.h"

namespace drun::cli {

namespace {

using check::Verdict;

constexpr std::size_t kVersion = 24;     // characters
constexpr std::size_t kShortTable = 20;  // hosts

const char* state_class(Verdict verdict) {
  return verdict == Verdict::kReady ? "ok" : verdict == Verdict::kWarnings ? "warn" : "bad";
}

const char* state_sign(Verdict verdict) {
  return verdict == Verdict::kReady ? "\u2713" : verdict == Verdict::kWarnings ? "!" : "\u00d7";
}

// A figure that links to the section with the details.
std::string tile(const char* section, const std::string& what, const std::string& value, const std::string& more) {
  return "<a class='tile'" + attribute("href", std::string("#") + section) + "><span class='soft small'>" +
         escape(what) + "</span><b>" + escape(value) + "</b><span class='soft small'>" + escape(more) + "</span></a>";
}

// Replaces "us" by the micro sign.
Figures with_micro_sign(Figures figures) {
  if (std::string_view(figures.time.name) == "us") figures.time.name = "\u00b5s";
  return figures;
}

class Page {
 public:
  explicit Page(const check::CheckResult& result)
      : result_(result), figures_(with_micro_sign(Figures(result))), names_(short_names(result)) {}

  std::string build() const {
    const std::string title = "drun check: " + verdict_text(result_.verdict);
    return "<!DOCTYPE html>\n<html lang='en'>\n<head>\n<meta charset='utf-8'>\n"
           "<meta name='viewport' content='width=device-width,initial-scale=1'>\n"
           // The page fetches nothing, and text that a host sent can't run.
           "<meta http-equiv='Content-Security-Policy' content=\"default-src 'none'; style-src 'unsafe-inline'; "
           "img-src data:\">\n"
           "<link rel='icon' href='data:,'>\n<title>" +
           escape(title) + "</title>\n<style>" + kCheckStyle + "</style>\n</head>\n<body>\n<main>\n" + header() +
           tiles() + findings_section(result_) + hosts() + heat_maps() + prediction() + topology() +
           notes_section(result_) + codes_section(result_) + appendix() + footer() + "</main>\n</body>\n</html>\n";
  }

 private:
  std::string header() const {
    return "<header class='" + std::string(state_class(result_.verdict)) + "'><span class='icon' aria-hidden='true'>" +
           state_sign(result_.verdict) + "</span><div><h1>" + escape(capital(verdict_text(result_.verdict))) +
           "</h1><p>" + escape(hosts_sentence(result_)) + "; " + escape(findings_sentence(result_)) +
           "</p></div></header>\n";
  }

  std::string tiles() const {
    const Matrix &bandwidth = figures_.bandwidth, &latency = figures_.latency;
    std::string out;
    if (bandwidth.median > 0) out += measured_tile("bandwidth", "Bandwidth", bandwidth, figures_.rate);
    if (latency.median > 0) out += measured_tile("latency", "Round trip", latency, figures_.time);
    if (result_.predicted && result_.predicted->seconds > 0) {
      const auto& p = *result_.predicted;
      out += tile("cost", "Allreduce of " + size_text(p.n_bytes), time_markup(p.seconds),
                  p.step_seconds > 0
                      ? share_text(p.efficiency) + " of the ideal speed with steps of " + time_markup(p.step_seconds)
                      : "predicted from the links");
    }
    return out.empty() ? "" : "<div class='tiles'>" + out + "</div>\n";
  }

  static std::string measured_tile(const char* section, const std::string& what, const Matrix& matrix,
                                   const Unit& unit) {
    double least = 0, most = 0;
    for (const auto& c : matrix.cells) {
      if (c.value <= 0) continue;
      least = least == 0 ? c.value : std::min(least, c.value);
      most = std::max(most, c.value);
    }
    const bool alike = unit.figure(least) == unit.figure(most);
    const std::string range = alike ? "" : unit.figure(least) + " to " + unit.text(most);
    if (matrix.median_counts()) {
      return tile(section, what + ", median", unit.text(matrix.median), alike ? "" : "from " + range);
    }
    return tile(section, what, alike ? unit.text(most) : range, alike ? "" : "by direction");
  }

  std::string hosts() const {
    const std::string rate = std::string(", ") + figures_.rate.name, time = std::string(", ") + figures_.time.name;
    const std::string line = "Line" + rate;
    HtmlTable table({{"Host"},
                     {"State"},
                     {"Interface"},
                     {"Address"},
                     {line, "num"},
                     {"Sends" + rate, "num"},
                     {"Receives" + rate, "num"},
                     {"Round trip" + time, "num"},
                     {"MTU", "num"},
                     {std::string("Login, ") + figures_.login.name, "num"}});
    std::vector<int> order(result_.hosts.size());
    std::iota(order.begin(), order.end(), 0);
    // In a long table the hosts with problems come first.
    if (order.size() > kShortTable) {
      std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
        return result_.hosts[static_cast<std::size_t>(a)].verdict > result_.hosts[static_cast<std::size_t>(b)].verdict;
      });
    }
    for (const int host : order) add_host(table, host);
    std::string words = table.shows(line) ? "Line is what the network card says. " : "";
    if (figures_.bandwidth.median > 0) {
      words += "What a host sends and receives, both at once, and round trips are medians over its peers.";
    }
    return "<section id='hosts'><h2>Hosts</h2><div class='scroll long'>" + table.markup() + "</div>" +
           (words.empty() ? "" : "<p class='soft small'>" + words + "</p>") + "</section>\n";
  }

  void add_host(HtmlTable& table, int index) const {
    const auto& host = result_.hosts[static_cast<std::size_t>(index)];
    const HostRates rates = host_rates(figures_.bandwidth, figures_.latency, index);
    const auto* interface = chosen_interface(host);
    const auto figure = [](double value, const Unit& unit) { return value > 0 ? unit.figure(value) : ""; };
    std::string name =
        "<b" + attribute("title", host.name) + ">" + escape(names_[static_cast<std::size_t>(index)]) + "</b>";
    if (!host.host_name.empty() && host.host_name != host.name) {
      name += "<span class='why'>" + escape(host.host_name) + "</span>";
    }
    std::string state = badge(state_class(host.verdict), state_sign(host.verdict) + (" " + verdict_text(host.verdict)));
    if (host.error) state += "<span class='why'>" + escape(host.error->cause) + "</span>";
    table.add(" class='row " + std::string(state_class(host.verdict)) + "'",
              {std::move(name), std::move(state), host.choice ? escape(host.choice->interface) : "",
               host.choice ? escape(host.choice->address.text()) : "", figure(line_rate(host), figures_.rate),
               figure(rates.sent, figures_.rate), figure(rates.received, figures_.rate),
               figure(rates.round_trip, figures_.time),
               interface != nullptr && interface->mtu > 0 ? std::to_string(interface->mtu) : "",
               figure(host.connect_seconds, figures_.login)});
  }

  std::string topology() const {
    const std::string drawing = topology_markup(result_, figures_);
    if (drawing.empty()) return "";
    return "<section id='topology'><h2>Topology</h2><p class='soft small'>Every link once, as the slower of its two "
           "directions, coloured against the median.</p><div class='scroll'>" +
           drawing + "</div></section>\n";
  }

  std::string heat_maps() const {
    std::string out;
    if (!figures_.bandwidth.empty()) {
      HeatMap map;
      map.matrix = &figures_.bandwidth;
      map.label = "bandwidth between hosts";
      map.heat = bandwidth_heat;
      map.unit = figures_.rate;
      out += heat_map("bandwidth", "Bandwidth",
                      "From the row\u2019s host to the column\u2019s, while as much goes the other way.", map,
                      {"faster", "slower"});
    }
    if (figures_.latency.median > 0) {
      HeatMap map;
      map.matrix = &figures_.latency;
      map.label = "round trips between hosts";
      map.heat = latency_heat;
      map.unit = figures_.time;
      map.symmetric = true;
      out += heat_map("latency", "Round trip", "The median of many small messages, one at a time.", map,
                      {"shorter", "longer"});
    }
    // Side by side if both fit.
    return result_.hosts.size() <= 6 && !out.empty() ? "<div class='pair'>" + out + "</div>" : out;
  }

  struct Words {
    const char *better, *worse;
  };

  std::string heat_map(const char* id, const std::string& title, const std::string& caption, HeatMap map,
                       const Words& words) const {
    map.names = names_;
    const std::string unit = map.matrix->n_hosts <= kFiguresTo ? std::string(", ") + map.unit.name : "";
    return "<section" + attribute("id", id) + "><h2>" + title + unit + "</h2><p class='soft small'>" + caption +
           "</p><div class='scroll'>" + heat_map_svg(map) + "</div>" +
           heat_legend(*map.matrix, map.heat, words.better, words.worse) + "</section>\n";
  }

  std::string prediction() const {
    if (!result_.predicted) return "";
    std::vector<std::string> sentences = {prediction_sentence(result_, figures_), efficiency_sentence(result_)};
    std::erase(sentences, "");
    for (auto& sentence : sentences) sentence = escape(capital(sentence)) + ".";
    int most = 1;
    for (const auto& host : result_.hosts) most = std::max(most, host.slots);
    return "<section id='cost'><h2>What an allreduce will cost</h2><p>" + join(sentences, " ") + "</p>" +
           cost_plot_markup(*result_.predicted, most) + "</section>\n";
  }

  // Details for few readers, folded.
  std::string appendix() const {
    const std::string body = rejected() + facts();
    return body.empty() ? "" : "<section id='more'><h2>More</h2>" + body + "</section>\n";
  }

  static std::string folded(const char* title, const HtmlTable& table) {
    if (table.empty()) return "";
    return "<details><summary>" + std::string(title) + "</summary><div class='scroll'>" + table.markup() +
           "</div></details>";
  }

  std::string rejected() const {
    HtmlTable table({{"Host"}, {"Interface"}, {"Address"}, {"Reason"}});
    for (const auto& host : result_.hosts) {
      for (const auto& rejection : host.rejected) {
        table.add(
            "", {escape(host.name), escape(rejection.interface), escape(rejection.address), escape(rejection.reason)});
      }
    }
    return folded("Interfaces that are not used, and why", table);
  }

  // "8 x NVIDIA H100 80GB HBM3"; several kinds are listed.
  static std::string gpus_text(const control::HostFacts& facts) {
    std::map<std::string, std::size_t> kinds;
    for (const auto& gpu : facts.gpus) ++kinds[gpu.name];
    std::vector<std::string> parts;
    for (const auto& [name, n] : kinds) parts.push_back(std::to_string(n) + " \u00d7 " + name);
    return join(parts, ", ");
  }

  std::string facts() const {
    std::set<std::string> names;
    for (const auto& host : result_.hosts) {
      if (!host.facts) continue;
      for (const auto& [name, version] : host.facts->versions) names.insert(name);
    }
    std::vector<HtmlTable::Column> columns = {{"Host"}, {"CPU"}, {"Cores", "num"}, {"Memory, GiB", "num"}, {"GPUs"}};
    for (const auto& name : names) columns.push_back({name});
    HtmlTable table(std::move(columns));
    for (const auto& host : result_.hosts) {
      if (!host.facts) continue;
      const auto& f = *host.facts;
      std::vector<std::string> cells = {
          escape(host.name), escape(f.cpu), f.n_cpus > 0 ? std::to_string(f.n_cpus) : "",
          f.memory_total_mib > 0 ? digits(static_cast<double>(f.memory_total_mib) / 1024) : "", escape(gpus_text(f))};
      for (const auto& name : names) {
        const auto at = f.versions.find(name);
        // Content hashes are cut: their first characters tell them apart.
        cells.push_back(at == f.versions.end() ? "" : escape(at->second.substr(0, kVersion)));
      }
      table.add("", std::move(cells));
    }
    return folded("What the hosts are like", table);
  }

  // Describes how the check was run.
  std::string footer() const {
    const char* depth = result_.depth == check::CheckDepth::kQuick  ? " --quick"
                        : result_.depth == check::CheckDepth::kFull ? " --full"
                                                                    : "";
    std::string out = "<footer><p>" + escape(capital(effort_sentence(result_))) + ".</p>";
    for (const auto& note : result_.notes) out += "<p>" + escape(capital(note)) + ".</p>";
    return out + "<p>drun check" + std::string(depth) +
           (result_.version.empty() ? "" : ", drun " + escape(result_.version)) + ", " +
           escape(launcher::rfc3339(result_.begin)) + "</p></footer>\n";
  }

  const check::CheckResult& result_;
  Figures figures_;
  std::vector<std::string> names_;
};

}  // namespace

std::string check_html(const check::CheckResult& result) { return Page(result).build(); }

}  // namespace drun::cli
