#include "base/clean_text.h"
#include "cli/check_report/report.h"

#include <algorithm>
#include <vector>

#include "base/text.h"
#include "cli/check_report/figures.h"
#include "cli/check_report/view.h"

namespace drun::cli {

namespace {

using check::Severity;
using check::Verdict;

constexpr int kMatrixHosts = 16;
constexpr std::size_t kWorstShown = 10;
constexpr std::size_t kNameWidth = 10;  // in a matrix; longer names lose their middle

// Columns, not bytes: only the first byte of a UTF-8 character counts.
std::size_t columns(const std::string& text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

std::string left(const std::string& text, std::size_t width) {
  return text + std::string(width > columns(text) ? width - columns(text) : 0, ' ');
}

std::string right(const std::string& text, std::size_t width) {
  return std::string(width > columns(text) ? width - columns(text) : 0, ' ') + text;
}

// The end of a name says more than its middle: "node-of-rack-0017" becomes "node..0017".
std::string shortened(const std::string& name) {
  if (name.size() <= kNameWidth) return name;
  const std::size_t tail = (kNameWidth - 2) / 2;
  return name.substr(0, kNameWidth - 2 - tail) + ".." + name.substr(name.size() - tail);
}

class Report {
 public:
  Report(const check::CheckResult& result, const TextStyle& style) : result_(result), style_(style), figures_(result) {}

  std::string build() {
    add_verdict();
    add_hosts();
    add_findings();
    add_bandwidth();
    add_latency();
    add_prediction();
    add_effort();
    return std::move(out_);
  }

 private:
  std::string paint(const char* code, const std::string& text) const {
    return style_.color ? std::string("\033[") + code + "m" + text + "\033[0m" : text;
  }
  std::string bold(const std::string& text) const { return paint("1", text); }
  static const char* color_of(Severity severity) {
    return severity == Severity::kFailure ? "1;31" : severity == Severity::kWarning ? "1;33" : "1;36";
  }
  static const char* color_of(Verdict verdict) {
    return verdict == Verdict::kReady ? "1;32" : verdict == Verdict::kWarnings ? "1;33" : "1;31";
  }

  // Wraps at words; `hang` begins every line after the first.
  void add_wrapped(const std::string& first, const std::string& hang, const std::string& text) {
    const std::string clean = clean_line(text);
    std::string line = first;
    bool fresh = true;
    for (const auto word : split(clean, ' ')) {
      if (word.empty()) continue;
      if (!fresh && columns(line) + 1 + word.size() > style_.width) {
        out_ += line + "\n";
        line = hang;
        fresh = true;
      }
      if (!fresh) line += ' ';
      line += word;
      fresh = false;
    }
    out_ += line + "\n";
  }

  void add_verdict() {
    out_ += "drun check: " + paint(color_of(result_.verdict), verdict_text(result_.verdict)) + "\n";
    add_wrapped("", "", hosts_sentence(result_) + "; " + findings_sentence(result_));
  }

  // A column of the table of hosts; omitted if it is empty for every host.
  struct Column {
    std::string title;
    std::vector<std::string> cells;
    bool figures = false;  // right-aligned

    bool empty() const {
      return std::all_of(cells.begin(), cells.end(), [](const std::string& cell) { return cell.empty(); });
    }
    std::size_t width() const {
      std::size_t out = columns(title);
      for (const auto& cell : cells) out = std::max(out, columns(cell));
      return out;
    }
    std::string placed(const std::string& text) const { return figures ? right(text, width()) : left(text, width()); }
  };

  void add_hosts() {
    Column name{"HOST", {}}, state{"STATE", {}}, interface {
      "INTERFACE", {}
    }, address{"ADDRESS", {}};
    Column line{"LINE", {}, true}, sends{"SENDS", {}, true}, receives{"RECEIVES", {}, true};
    const auto names = short_names(result_);
    const auto rate = [&](double value) { return value > 0 ? figures_.rate.figure(value) : ""; };
    for (std::size_t i = 0; i < result_.hosts.size(); ++i) {
      const auto& host = result_.hosts[i];
      const HostRates rates = host_rates(figures_.bandwidth, figures_.latency, static_cast<int>(i));
      name.cells.push_back(clean_line(names[i]));
      state.cells.push_back(verdict_text(host.verdict));
      interface.cells.push_back(host.choice ? clean_line(host.choice->interface) : "");
      address.cells.push_back(host.choice ? host.choice->address.text() : "");
      line.cells.push_back(rate(line_rate(host)));
      sends.cells.push_back(rate(rates.sent));
      receives.cells.push_back(rate(rates.received));
    }
    const bool rates_shown = !line.empty() || !sends.empty() || !receives.empty();
    std::vector<Column> shown = {std::move(name), std::move(state), std::move(interface), std::move(address),
                                 std::move(line), std::move(sends), std::move(receives)};
    std::erase_if(shown, [](const Column& column) { return column.empty(); });
    std::string head;
    for (const Column& column : shown) head += (head.empty() ? "" : "  ") + column.placed(column.title);
    head.erase(head.find_last_not_of(' ') + 1);
    out_ += "\n" + bold(head) + (rates_shown ? std::string("  in ") + figures_.rate.name : "") + "\n";
    for (std::size_t i = 0; i < result_.hosts.size(); ++i) {
      std::string row;
      for (const Column& column : shown) {
        const std::string& text = column.cells[i];
        std::string cell = column.placed(text.empty() ? "-" : text);
        // Escapes take no columns: align first, color after.
        if (column.title == "STATE") cell.replace(0, text.size(), paint(color_of(result_.hosts[i].verdict), text));
        row += (row.empty() ? "" : "  ") + cell;
      }
      row.erase(row.find_last_not_of(' ') + 1);
      out_ += row + "\n";
    }
  }

  void add_findings() {
    for (const auto& finding : result_.findings) {
      const std::string severity = severity_text(finding.severity);
      const std::string subject = finding.subject.empty() ? "" : finding.subject + ": ";
      out_ += "\n";
      // Escapes take no columns: wrap first, color after.
      const std::size_t at = out_.size();
      add_wrapped(severity + ": ", "  ", subject + finding.text + " [" + finding.code + "]");
      out_.replace(at, severity.size(), paint(color_of(finding.severity), severity));
      add_evidence(finding);
      // Never wrapped, so that it can be copied.
      if (!finding.command.empty()) out_ += "  " + paint("1;36", "try") + ": " + clean_line(finding.command) + "\n";
    }
  }

  // Prints both sides of a comparison side by side if they fit.
  void add_evidence(const check::Finding& finding) {
    if (finding.comparison.empty()) {
      for (const auto& detail : finding.details) add_wrapped("  ", "    ", detail);
      return;
    }
    Column own{evidence_head(finding), {}}, others{kComparisonHead, {}};
    for (const auto& detail : finding.details) own.cells.push_back(clean_line(detail));
    for (const auto& line : finding.comparison) others.cells.push_back(clean_line(line));
    const std::size_t wide = own.width();
    if (2 + wide + 3 + others.width() > style_.width) {
      for (const auto& detail : finding.details) add_wrapped("  ", "    ", detail);
      out_ += "  " + others.title + ":\n";
      for (const auto& line : finding.comparison) add_wrapped("    ", "      ", line);
      return;
    }
    out_ += "  " + bold(left(own.title, wide)) + "   " + bold(others.title) + "\n";
    for (std::size_t i = 0; i < std::max(own.cells.size(), others.cells.size()); ++i) {
      std::string row = "  " + left(i < own.cells.size() ? own.cells[i] : "", wide) + "   " +
                        (i < others.cells.size() ? others.cells[i] : "");
      row.erase(row.find_last_not_of(' ') + 1);
      out_ += row + "\n";
    }
  }

  std::string cell_text(const Matrix& matrix, int from, int to, const Unit& unit) const {
    const Cell& cell = matrix.at(from, to);
    if (from == to) return ".";
    if (cell.value > 0) return unit.figure(cell.value);
    return cell.error.empty() ? "-" : "failed";
  }

  static const char* heat_color(Heat heat) {
    switch (heat) {
      case Heat::kBetter:
        return "36";
      case Heat::kNormal:
        return "32";
      case Heat::kBelow:
        return "33";
      case Heat::kBad:
        return "1;33";
      case Heat::kAwful:
        return "1;31";
      case Heat::kFailed:
        return "1;37;41";
      case Heat::kNone:
        break;
    }
    return "2";
  }

  void add_cells(const Matrix& matrix, const Unit& unit, Heat (*heat)(const Matrix&, int, int)) {
    std::vector<std::string> names;
    std::size_t name_width = 0;
    for (const auto& name : short_names(result_)) {
      names.push_back(shortened(clean_line(name)));
      name_width = std::max(name_width, names.back().size());
    }
    std::vector<std::size_t> widths;
    for (int to = 0; to < matrix.n_hosts; ++to) {
      std::size_t width = names[static_cast<std::size_t>(to)].size();
      for (int from = 0; from < matrix.n_hosts; ++from) {
        width = std::max(width, cell_text(matrix, from, to, unit).size());
      }
      widths.push_back(width);
    }
    out_ += "  " + std::string(name_width, ' ');
    for (std::size_t to = 0; to < names.size(); ++to) out_ += " " + bold(right(names[to], widths[to]));
    out_ += "\n";
    for (int from = 0; from < matrix.n_hosts; ++from) {
      out_ += "  " + bold(left(names[static_cast<std::size_t>(from)], name_width));
      for (int to = 0; to < matrix.n_hosts; ++to) {
        const std::string text = right(cell_text(matrix, from, to, unit), widths[static_cast<std::size_t>(to)]);
        out_ += " " + paint(from == to ? "2" : heat_color(heat(matrix, from, to)), text);
      }
      out_ += "\n";
    }
  }

  void add_worst(const Matrix& matrix, const std::vector<Entry>& entries, const Unit& unit) {
    for (std::size_t i = 0; i < std::min(entries.size(), kWorstShown); ++i) {
      const Entry& entry = entries[i];
      const Cell& cell = matrix.at(entry.from, entry.to);
      out_ += "  " + clean_line(result_.hosts[static_cast<std::size_t>(entry.from)].name) + " to " +
              clean_line(result_.hosts[static_cast<std::size_t>(entry.to)].name) + ": " +
              paint(heat_color(entry.heat), cell.value > 0 ? unit.text(cell.value) : clean_line(cell.error)) + "\n";
    }
    if (entries.size() > kWorstShown) {
      out_ += "  and " + std::to_string(entries.size() - kWorstShown) + " more: --html FILE shows all\n";
    }
    if (entries.empty()) out_ += "  none is far from it\n";
  }

  void add_bandwidth() {
    const Matrix& matrix = figures_.bandwidth;
    if (matrix.empty()) return;
    out_ += "\n";
    const std::string median = matrix.median_counts() ? "median " + figures_.rate.text(matrix.median) : "";
    if (matrix.n_hosts <= kMatrixHosts) {
      add_wrapped("", "",
                  std::string("bandwidth from the row's host to the column's, both directions at once, in ") +
                      figures_.rate.name + (median.empty() ? "" : "; " + median) + ":");
      add_cells(matrix, figures_.rate, bandwidth_heat);
    } else {
      add_wrapped("", "", "bandwidth, the worst" + (median.empty() ? "" : " (" + median + ")") + ":");
      add_worst(matrix, worst_bandwidth(matrix), figures_.rate);
    }
  }

  void add_latency() {
    const Matrix& matrix = figures_.latency;
    if (matrix.median <= 0) return;
    out_ += "\n";
    const std::string median = matrix.median_counts() ? "median " + figures_.time.text(matrix.median) : "";
    if (matrix.n_hosts <= kMatrixHosts) {
      add_wrapped("", "",
                  std::string("round trip, in ") + figures_.time.name + (median.empty() ? "" : "; " + median) + ":");
      add_cells(matrix, figures_.time, latency_heat);
    } else {
      add_wrapped("", "", "round trip, the worst (" + median + "):");
      add_worst(matrix, worst_latency(matrix), figures_.time);
    }
  }

  void add_prediction() {
    const std::string sentence = prediction_sentence(result_, figures_);
    if (sentence.empty()) return;
    out_ += "\n";
    add_wrapped("", "", sentence);
    const std::string efficiency = efficiency_sentence(result_);
    if (!efficiency.empty()) add_wrapped("", "", efficiency);
  }

  void add_effort() {
    out_ += "\n";
    for (const auto& note : result_.notes) add_wrapped("note: ", "  ", note);
    add_wrapped("", "", effort_sentence(result_));
  }

  const check::CheckResult& result_;
  const TextStyle& style_;
  Figures figures_;
  std::string out_;
};

}  // namespace

std::string check_text(const check::CheckResult& result, const TextStyle& style) {
  return Report(result, style).build();
}

}  // namespace drun::cli
