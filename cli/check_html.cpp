#include "cli/check_html.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <string_view>

#include "base/text.h"
#include "cli/check_cost_plot.h"
#include "cli/check_figures.h"
#include "cli/check_heat_map.h"
#include "cli/check_style.h"
#include "cli/check_topology.h"
#include "cli/check_units.h"
#include "cli/check_view.h"
#include "cli/markup.h"
#include "launcher/events.h"
#include "netdetect/units.h"

namespace drun::cli {

namespace {

using netdetect::Severity;
using netdetect::Verdict;

constexpr std::size_t kVersion = 24;     // characters
constexpr std::size_t kShortTable = 20;  // hosts
constexpr const char* kNone = "<span class='soft'>\u2013</span>";

const char* state_class(Verdict verdict) {
  return verdict == Verdict::kReady ? "ok" : verdict == Verdict::kWarnings ? "warn" : "bad";
}

const char* state_sign(Verdict verdict) {
  return verdict == Verdict::kReady ? "\u2713" : verdict == Verdict::kWarnings ? "!" : "\u00d7";
}

const char* severity_class(Severity severity) {
  return severity == Severity::kFailure ? "bad" : severity == Severity::kWarning ? "warn" : "note";
}

std::string capital(std::string text) {
  if (!text.empty() && text[0] >= 'a' && text[0] <= 'z') text[0] = static_cast<char>(text[0] - 'a' + 'A');
  return text;
}

std::string badge(const char* state, const std::string& text) {
  return "<span class='badge " + std::string(state) + "'>" + escape(text) + "</span>";
}

std::string tile(const std::string& what, const std::string& value, const std::string& more) {
  return "<div class='tile'><span class='soft small'>" + escape(what) + "</span><b>" + escape(value) +
         "</b><span class='soft small'>" + escape(more) + "</span></div>";
}

std::string cell(const std::string& text, const char* name = "") {
  return std::string("<td") + (*name == '\0' ? "" : attribute("class", name)) + ">" +
         (text.empty() ? kNone : escape(text)) + "</td>";
}

// The time's sign as a page can show it.
Figures with_micro_sign(Figures figures) {
  if (std::string_view(figures.time.name) == "us") figures.time.name = "\u00b5s";
  return figures;
}

class Page {
 public:
  explicit Page(const launcher::CheckResult& result) : result_(result), figures_(with_micro_sign(Figures(result))) {}

  std::string build() const {
    const std::string title = "drun check: " + verdict_text(result_.verdict);
    return "<!DOCTYPE html>\n<html lang='en'>\n<head>\n<meta charset='utf-8'>\n"
           "<meta name='viewport' content='width=device-width,initial-scale=1'>\n"
           // Nothing is ever fetched, and no text that a host sent could run.
           "<meta http-equiv='Content-Security-Policy' content=\"default-src 'none'; style-src 'unsafe-inline'; "
           "img-src data:\">\n"
           "<link rel='icon' href='data:,'>\n<title>" +
           escape(title) + "</title>\n<style>" + kCheckStyle + "</style>\n</head>\n<body>\n<main>\n" + header() +
           tiles() + findings() + hosts() + prediction() + topology() + heat_maps() + appendix() + footer() +
           "</main>\n</body>\n</html>\n";
  }

 private:
  std::string header() const {
    return "<header class='" + std::string(state_class(result_.verdict)) + "'><span class='icon' aria-hidden='true'>" +
           state_sign(result_.verdict) + "</span><div><h1>" + escape(capital(verdict_text(result_.verdict))) +
           "</h1><p>" + escape(hosts_sentence(result_)) + "; " + escape(findings_sentence(result_)) +
           "</p></div></header>\n";
  }

  std::string tiles() const {
    const std::size_t n = result_.hosts.size();
    const auto usable = static_cast<std::size_t>(
        std::count_if(result_.hosts.begin(), result_.hosts.end(),
                      [](const launcher::CheckedHost& h) { return h.verdict != Verdict::kNotReady; }));
    std::string out =
        "<div class='tiles'>" +
        tile("Hosts that can take part", std::to_string(usable) + " of " + std::to_string(n), effort_sentence(result_));
    if (figures_.bandwidth.median > 0) {
      out += tile("Bandwidth, median", figures_.rate.text(figures_.bandwidth.median),
                  extremes(figures_.bandwidth, figures_.rate));
    }
    if (figures_.latency.median > 0)
      out += tile("Round trip, median", figures_.time.text(figures_.latency.median),
                  extremes(figures_.latency, figures_.time));
    if (result_.predicted) {
      const auto& p = *result_.predicted;
      out += tile("Allreduce of " + netdetect::size_text(p.n_bytes), time_markup(p.seconds),
                  p.step_seconds > 0 ? netdetect::share_text(p.efficiency) + " of the ideal speed with steps of " +
                                           time_markup(p.step_seconds)
                                     : "predicted from the links");
    }
    return out + "</div>\n";
  }

  static std::string extremes(const Matrix& matrix, const netdetect::Unit& unit) {
    double least = 0, most = 0;
    for (const auto& c : matrix.cells) {
      if (c.value <= 0) continue;
      least = least == 0 ? c.value : std::min(least, c.value);
      most = std::max(most, c.value);
    }
    return "from " + unit.figure(least) + " to " + unit.text(most);
  }

  std::string findings() const {
    std::string out = "<section id='findings'><h2>Findings</h2>";
    if (result_.findings.empty()) out += "<p class='soft'>Nothing wrong was found.</p>";
    for (const auto& f : result_.findings) {
      out += "<article class='finding " + std::string(severity_class(f.severity)) + "'><div class='head'>" +
             badge(severity_class(f.severity), severity_text(f.severity)) + "<h3>" +
             escape(f.subject.empty() ? "the cluster" : f.subject) + "</h3><code class='code'>" + escape(f.code) +
             "</code></div><p>" + escape(capital(f.text)) + "</p>";
      if (!f.details.empty()) {
        out += "<ul>";
        for (const auto& detail : f.details) out += "<li>" + escape(detail) + "</li>";
        out += "</ul>";
      }
      if (!f.comparison.empty()) {
        out += "<p class='soft small'>" + escape(kComparisonHead) + ":</p><ul>";
        for (const auto& line : f.comparison) out += "<li>" + escape(line) + "</li>";
        out += "</ul>";
      }
      if (!f.command.empty()) out += "<pre><code>" + escape(f.command) + "</code></pre>";
      out += "</article>";
    }
    return out + "</section>\n";
  }

  std::string hosts() const {
    std::string out =
        "<section id='hosts'><h2>Hosts</h2><div class='scroll long'><table><thead><tr><th>Host<th>State<th>Interface"
        "<th>Address<th class='num'>Line<th class='num'>Sends<th class='num'>Receives<th class='num'>Round trip"
        "<th class='num'>MTU<th class='num'>Login</tr></thead><tbody>";
    std::vector<int> order(result_.hosts.size());
    std::iota(order.begin(), order.end(), 0);
    // A long table has those to look at on top.
    if (order.size() > kShortTable) {
      std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
        return result_.hosts[static_cast<std::size_t>(a)].verdict > result_.hosts[static_cast<std::size_t>(b)].verdict;
      });
    }
    for (const int host : order) out += host_row(host);
    return out +
           "</tbody></table></div><p class='soft small'>Line is what the network card says; what a host sends and "
           "receives, "
           "both at once, and round trips are medians over its peers.</p></section>\n";
  }

  std::string host_row(int index) const {
    const auto& host = result_.hosts[static_cast<std::size_t>(index)];
    const HostRates rates = host_rates(figures_.bandwidth, figures_.latency, index);
    const auto* interface = chosen_interface(host);
    std::string out =
        "<tr class='row " + std::string(state_class(host.verdict)) + "'><td><b>" + escape(host.name) + "</b>";
    if (!host.host_name.empty() && host.host_name != host.name) {
      out += "<span class='why'>" + escape(host.host_name) + "</span>";
    }
    out +=
        "</td><td>" + badge(state_class(host.verdict), state_sign(host.verdict) + (" " + verdict_text(host.verdict)));
    if (host.error) out += "<span class='why'>" + escape(host.error->cause) + "</span>";
    out += "</td>";
    out += cell(host.choice ? host.choice->interface : "") + cell(host.choice ? host.choice->address.text() : "");
    out += cell(line_rate(host) > 0 ? figures_.rate.text(line_rate(host)) : "", "num");
    out += cell(rates.sent > 0 ? figures_.rate.text(rates.sent) : "", "num");
    out += cell(rates.received > 0 ? figures_.rate.text(rates.received) : "", "num");
    out += cell(rates.round_trip > 0 ? figures_.time.text(rates.round_trip) : "", "num");
    out += cell(interface != nullptr && interface->mtu > 0 ? std::to_string(interface->mtu) : "", "num");
    out += cell(host.connect_seconds > 0 ? time_markup(host.connect_seconds) : "", "num");
    return out + "</tr>";
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
    const auto names = short_names(result_);
    if (!figures_.bandwidth.empty()) {
      HeatMap map;
      map.matrix = &figures_.bandwidth;
      map.names = names;
      map.label = "bandwidth between hosts";
      map.heat = bandwidth_heat;
      map.unit = figures_.rate;
      const std::string unit = figures_.rate.name;
      const std::string figures = figures_.bandwidth.n_hosts <= 16 ? ", in " + unit : "";
      out +=
          "<section id='bandwidth'><h2>Bandwidth" + figures +
          "</h2><p class='soft small'>From the row\u2019s host to the column\u2019s, while as much goes the other way" +
          median_words(figures_.bandwidth, figures_.rate) + ".</p><div class='scroll'>" + heat_map_svg(map) + "</div>" +
          heat_legend(figures_.bandwidth, bandwidth_heat, "faster", "slower") + "</section>\n";
    }
    if (figures_.latency.median > 0) {
      HeatMap map;
      map.matrix = &figures_.latency;
      map.names = names;
      map.label = "round trips between hosts";
      map.heat = latency_heat;
      map.unit = figures_.time;
      map.symmetric = true;
      const std::string figures = figures_.latency.n_hosts <= 16 ? std::string(", in ") + figures_.time.name : "";
      out += "<section id='latency'><h2>Round trip" + figures +
             "</h2><p class='soft small'>The median of many small messages, one at a time" +
             median_words(figures_.latency, figures_.time) + ".</p><div class='scroll'>" + heat_map_svg(map) +
             "</div>" + heat_legend(figures_.latency, latency_heat, "shorter", "longer") + "</section>\n";
    }
    // Side by side where there is room for both.
    return result_.hosts.size() <= 6 && !out.empty() ? "<div class='pair'>" + out + "</div>" : out;
  }

  static std::string median_words(const Matrix& matrix, const netdetect::Unit& unit) {
    return matrix.median > 0 ? "; the median is " + unit.text(matrix.median) : "";
  }

  std::string prediction() const {
    if (!result_.predicted) return "";
    const std::string efficiency = efficiency_sentence(result_);
    return "<section id='cost'><h2>What an allreduce will cost</h2><p>" +
           escape(capital(prediction_sentence(result_, figures_))) + "." +
           (efficiency.empty() ? "" : " " + escape(capital(efficiency)) + ".") + "</p>" +
           cost_plot_markup(*result_.predicted) + "</section>\n";
  }

  // What few want to know, folded.
  std::string appendix() const {
    const std::string body = rejected() + facts() + notes();
    return body.empty() ? "" : "<section id='more'><h2>More</h2>" + body + "</section>\n";
  }

  std::string rejected() const {
    std::string rows;
    for (const auto& host : result_.hosts) {
      for (const auto& rejection : host.rejected) {
        rows += "<tr>" + cell(host.name) + cell(rejection.interface) + cell(rejection.address) +
                cell(rejection.reason) + "</tr>";
      }
    }
    if (rows.empty()) return "";
    return "<details><summary>Interfaces that are not used, and why</summary><div class='scroll'><table><thead><tr>"
           "<th>Host<th>Interface<th>Address<th>Reason</tr></thead><tbody>" +
           rows + "</tbody></table></div></details>";
  }

  // "8 x NVIDIA H100 80GB HBM3"; several kinds are listed.
  static std::string gpus_text(const launcher::HostFacts& facts) {
    std::map<std::string, std::size_t> kinds;
    for (const auto& gpu : facts.gpus) ++kinds[gpu.name];
    std::vector<std::string> parts;
    for (const auto& [name, n] : kinds) parts.push_back(std::to_string(n) + " \u00d7 " + name);
    return join(parts, ", ");
  }

  static std::string gib_text(std::int64_t mib) {
    return mib <= 0 ? "" : digits(static_cast<double>(mib) / 1024) + " GiB";
  }

  std::string facts() const {
    std::set<std::string> names;
    bool any = false;
    for (const auto& host : result_.hosts) {
      if (!host.facts) continue;
      any = true;
      for (const auto& [name, version] : host.facts->versions) names.insert(name);
    }
    if (!any) return "";
    std::string out =
        "<details><summary>What the hosts are like</summary><div class='scroll'><table><thead><tr><th>Host<th>CPU"
        "<th class='num'>Cores<th class='num'>Memory<th>GPUs";
    for (const auto& name : names) out += "<th>" + escape(name);
    out += "</tr></thead><tbody>";
    for (const auto& host : result_.hosts) {
      if (!host.facts) continue;
      const auto& f = *host.facts;
      out += "<tr>" + cell(host.name) + cell(f.cpu) + cell(f.n_cpus > 0 ? std::to_string(f.n_cpus) : "", "num") +
             cell(gib_text(f.memory_total_mib), "num") + cell(gpus_text(f));
      for (const auto& name : names) {
        const auto at = f.versions.find(name);
        // Content hashes are longer than anybody compares.
        out += cell(at == f.versions.end() ? "" : at->second.substr(0, kVersion));
      }
      out += "</tr>";
    }
    return out + "</tbody></table></div></details>";
  }

  std::string notes() const {
    if (result_.notes.empty()) return "";
    std::string out = "<details open><summary>Notes</summary><ul>";
    for (const auto& note : result_.notes) out += "<li>" + escape(note) + "</li>";
    return out + "</ul></details>";
  }

  std::string footer() const {
    const char* depth = result_.depth == launcher::CheckDepth::kQuick  ? " --quick"
                        : result_.depth == launcher::CheckDepth::kFull ? " --full"
                                                                       : "";
    return "<footer>drun check" + std::string(depth) +
           (result_.version.empty() ? "" : ", drun " + escape(result_.version)) + ", " +
           escape(launcher::rfc3339(result_.begin)) + "</footer>\n";
  }

  const launcher::CheckResult& result_;
  Figures figures_;
};

}  // namespace

std::string check_html(const launcher::CheckResult& result) { return Page(result).build(); }

}  // namespace drun::cli
