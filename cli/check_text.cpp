#include "cli/check_text.h"

#include <algorithm>
#include <vector>

#include "base/text.h"
#include "cli/check_units.h"
#include "cli/check_view.h"
#include "netdetect/units.h"

namespace drun::cli {

namespace {

using netdetect::Severity;
using netdetect::Verdict;

constexpr int kMatrixHosts = 16;
constexpr std::size_t kWorstShown = 10;
constexpr std::size_t kNameWidth = 10;  // in a matrix; longer ones lose their middle

// Columns, not bytes: what is not the first byte of a UTF-8 character takes none.
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

// What came from a host may hold control characters, which a terminal would obey.
std::string printable(const std::string& text) {
  std::string out = text;
  for (char& c : out) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) c = ' ';
  }
  return out;
}

// The end of a name says more than its middle: "node-of-rack-0017" becomes "node..0017".
std::string shortened(const std::string& name) {
  if (name.size() <= kNameWidth) return name;
  const std::size_t tail = (kNameWidth - 2) / 2;
  return name.substr(0, kNameWidth - 2 - tail) + ".." + name.substr(name.size() - tail);
}

class Report {
 public:
  Report(const launcher::CheckResult& result, const TextStyle& style)
      : result_(result), style_(style), bandwidth_(bandwidth_matrix(result)), latency_(latency_matrix(result)) {}

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

  // Words go to the next line as a whole; `hang`: what lines after the first begin with.
  void add_wrapped(const std::string& first, const std::string& hang, const std::string& text) {
    const std::string clean = printable(text);
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

  void add_hosts() {
    struct Row {
      std::string name, verdict, interface, address, line, sends, receives;
    };
    const std::string none = "-";
    const auto names = short_names(result_);
    std::vector<Row> rows;
    for (std::size_t i = 0; i < result_.hosts.size(); ++i) {
      const auto& host = result_.hosts[i];
      const HostRates rates = host_rates(bandwidth_, latency_, static_cast<int>(i));
      Row row;
      row.name = printable(names[i]);
      row.verdict = verdict_text(host.verdict);
      row.interface = host.choice ? printable(host.choice->interface) : none;
      row.address = host.choice ? host.choice->address.text() : none;
      row.line = line_speed_text(host).empty() ? none : line_speed_text(host);
      row.sends = rates.sent > 0 ? netdetect::rate_text(rates.sent) : none;
      row.receives = rates.received > 0 ? netdetect::rate_text(rates.received) : none;
      rows.push_back(std::move(row));
    }
    const auto widest = [&](std::string Row::*column, std::size_t least) {
      for (const auto& row : rows) least = std::max(least, columns(row.*column));
      return least;
    };
    const std::size_t name = widest(&Row::name, 4), verdict = widest(&Row::verdict, 5);
    const std::size_t interface = widest(&Row::interface, 9), address = widest(&Row::address, 7);
    const std::size_t line = widest(&Row::line, 4), sends = widest(&Row::sends, 5);
    out_ += "\n" +
            bold(left("HOST", name) + "  " + left("STATE", verdict) + "  " + left("INTERFACE", interface) + "  " +
                 left("ADDRESS", address) + "  " + left("LINE", line) + "  " + left("SENDS", sends) + "  RECEIVES") +
            "\n";
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const Row& row = rows[i];
      out_ += left(row.name, name) + "  " + paint(color_of(result_.hosts[i].verdict), row.verdict) +
              std::string(verdict - columns(row.verdict), ' ') + "  " + left(row.interface, interface) + "  " +
              left(row.address, address) + "  " + left(row.line, line) + "  " + left(row.sends, sends) + "  " +
              row.receives + "\n";
    }
  }

  void add_findings() {
    for (const auto& finding : result_.findings) {
      const std::string severity = severity_text(finding.severity);
      const std::string subject = finding.subject.empty() ? "" : finding.subject + ": ";
      out_ += "\n";
      // The escapes take no columns: wrapped first, painted after.
      const std::size_t at = out_.size();
      add_wrapped(severity + ": ", "  ", subject + finding.text + " [" + finding.code + "]");
      out_.replace(at, severity.size(), paint(color_of(finding.severity), severity));
      for (const auto& detail : finding.details) add_wrapped("  ", "    ", detail);
      // Never wrapped: it is there to be copied.
      if (!finding.command.empty()) out_ += "  " + paint("1;36", "try") + ": " + printable(finding.command) + "\n";
    }
  }

  std::string cell_text(const Matrix& matrix, int from, int to, double unit) const {
    const Cell& cell = matrix.at(from, to);
    if (from == to) return ".";
    if (cell.value > 0) return digits(cell.value / unit);
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

  void add_cells(const Matrix& matrix, double unit, Heat (*heat)(const Matrix&, int, int)) {
    std::vector<std::string> names;
    std::size_t name_width = 0;
    for (const auto& name : short_names(result_)) {
      names.push_back(shortened(printable(name)));
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

  void add_worst(const Matrix& matrix, const std::vector<Entry>& entries, std::string (*text)(double)) {
    for (std::size_t i = 0; i < std::min(entries.size(), kWorstShown); ++i) {
      const Entry& entry = entries[i];
      const Cell& cell = matrix.at(entry.from, entry.to);
      out_ += "  " + printable(result_.hosts[static_cast<std::size_t>(entry.from)].name) + " to " +
              printable(result_.hosts[static_cast<std::size_t>(entry.to)].name) + ": " +
              paint(heat_color(entry.heat), cell.value > 0 ? text(cell.value) : printable(cell.error)) + "\n";
    }
    if (entries.size() > kWorstShown) {
      out_ += "  and " + std::to_string(entries.size() - kWorstShown) + " more: --html FILE shows all\n";
    }
    if (entries.empty()) out_ += "  none is far from it\n";
  }

  void add_bandwidth() {
    if (bandwidth_.empty()) return;
    const bool whole = bandwidth_.n_hosts <= kMatrixHosts;
    const bool giga = bandwidth_.median >= 10e9;
    std::string head = whole ? "bandwidth from the row's host to the column's, both directions at once, in " +
                                   std::string(giga ? "Gb/s" : "Mb/s")
                             : "bandwidth, the worst";
    if (bandwidth_.median > 0)
      head += (whole ? "; median " : " (median ") + netdetect::rate_text(bandwidth_.median) + (whole ? "" : ")");
    out_ += "\n";
    add_wrapped("", "", head + ":");
    if (whole) {
      add_cells(bandwidth_, giga ? 1e9 : 1e6, bandwidth_heat);
    } else {
      add_worst(bandwidth_, worst_bandwidth(bandwidth_), netdetect::rate_text);
    }
  }

  void add_latency() {
    if (latency_.median <= 0) return;
    const bool whole = latency_.n_hosts <= kMatrixHosts;
    const bool milli = latency_.median >= 10e-3;
    out_ += "\n";
    if (whole) {
      add_wrapped("", "",
                  std::string("round trip, in ") + (milli ? "ms" : "us") + "; median " +
                      netdetect::time_text(latency_.median) + ":");
      add_cells(latency_, milli ? 1e-3 : 1e-6, latency_heat);
    } else {
      add_wrapped("", "", "round trip, the worst (median " + netdetect::time_text(latency_.median) + "):");
      add_worst(latency_, worst_latency(latency_), netdetect::time_text);
    }
  }

  void add_prediction() {
    const std::string sentence = prediction_sentence(result_);
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

  const launcher::CheckResult& result_;
  const TextStyle& style_;
  Matrix bandwidth_, latency_;
  std::string out_;
};

}  // namespace

std::string check_text(const launcher::CheckResult& result, const TextStyle& style) {
  return Report(result, style).build();
}

}  // namespace drun::cli
