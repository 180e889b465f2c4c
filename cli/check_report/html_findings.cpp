#include "cli/check_report/html_findings.h"

#include <algorithm>
#include <set>
#include <string_view>
#include <vector>

#include "base/text.h"
#include "cli/check_report/codes.h"
#include "cli/check_report/markup.h"
#include "cli/check_report/view.h"

namespace drun::cli {

namespace {

using check::Finding;
using check::Severity;

const char* severity_class(Severity severity) {
  return severity == Severity::kFailure ? "bad" : severity == Severity::kWarning ? "warn" : "note";
}

// Converts `code` in Markdown to markup; the rest is escaped.
std::string code_markup(std::string_view text) {
  std::string out;
  bool code = false;
  for (const auto part : split(text, '`')) {
    out += code ? "<code>" + escape(part) + "</code>" : escape(part);
    code = !code;
  }
  return out;
}

std::string code_anchor(const std::string& code) { return "code-" + code; }

// Splits "host1 to host2: 9.44 Mb/s" into two cells.
std::string evidence_row(const std::string& line) {
  const auto colon = line.find(": ");
  if (colon == std::string::npos) return "<tr><td colspan='2'>" + escape(line) + "</td></tr>";
  return "<tr><td>" + escape(line.substr(0, colon)) + "</td><td class='num'>" + escape(line.substr(colon + 2)) +
         "</td></tr>";
}

std::string evidence_table(const std::string& head, const std::vector<std::string>& lines) {
  std::string out = "<table><thead><tr><th colspan='2'>" + escape(head) + "</tr></thead><tbody>";
  for (const auto& line : lines) out += evidence_row(line);
  return out + "</tbody></table>";
}

bool is_note(const Finding& finding) { return finding.severity == Severity::kNote; }

std::size_t n_notes(const check::CheckResult& result) {
  return static_cast<std::size_t>(std::count_if(result.findings.begin(), result.findings.end(), is_note));
}

std::string evidence(const Finding& finding) {
  if (!finding.comparison.empty()) {
    return "<div class='evidence'>" + evidence_table(evidence_head(finding), finding.details) +
           evidence_table(kComparisonHead, finding.comparison) + "</div>";
  }
  std::string out;
  for (const auto& detail : finding.details) out += "<li>" + escape(detail) + "</li>";
  return out.empty() ? "" : "<ul>" + out + "</ul>";
}

std::string article(const Finding& finding) {
  std::string code = "<code>" + escape(finding.code) + "</code>";
  if (!code_meaning(finding.code).empty()) {
    code = "<a" + attribute("href", "#" + code_anchor(finding.code)) + " title='what it means'>" + code + "</a>";
  }
  std::string out = "<article class='finding " + std::string(severity_class(finding.severity)) +
                    "'><div class='head'>" + badge(severity_class(finding.severity), severity_text(finding.severity)) +
                    "<h3>" + escape(finding.subject.empty() ? "the cluster" : finding.subject) +
                    "</h3><span class='code'>" + code + "</span></div><p>" + escape(capital(finding.text)) + "</p>" +
                    evidence(finding);
  if (!finding.command.empty()) out += "<pre><code>" + escape(finding.command) + "</code></pre>";
  return out + "</article>";
}

}  // namespace

std::string findings_section(const check::CheckResult& result) {
  std::string out;
  for (const auto& finding : result.findings) {
    if (!is_note(finding)) out += article(finding);
  }
  if (out.empty()) out = "<p class='soft'>Nothing wrong was found.</p>";
  if (const std::size_t n = n_notes(result); n > 0) {
    out += "<p class='soft small below'><a href='#notes'>" + plural(n, "note") + "</a> at the end of the page</p>";
  }
  return "<section id='findings'><h2>Findings</h2>" + out + "</section>\n";
}

std::string notes_section(const check::CheckResult& result) {
  const std::size_t n = n_notes(result);
  if (n == 0) return "";
  std::string out;
  for (const auto& finding : result.findings) {
    if (is_note(finding)) out += article(finding);
  }
  return "<section id='notes'><details><summary><h2>" + plural(n, "note") +
         "</h2><span class='soft small'>worth knowing, nothing to mend</span></summary>" + out +
         "</details></section>\n";
}

std::string codes_section(const check::CheckResult& result) {
  std::set<std::string> told;
  std::string out;
  for (const auto& finding : result.findings) {
    const std::string meaning = code_meaning(finding.code);
    if (meaning.empty() || !told.insert(finding.code).second) continue;
    out += "<div><dt" + attribute("id", code_anchor(finding.code)) + "><code>" + escape(finding.code) +
           "</code></dt><dd>" + code_markup(meaning) + "</dd></div>";
  }
  return out.empty() ? "" : "<section id='codes'><h2>What the codes mean</h2><dl>" + out + "</dl></section>\n";
}

}  // namespace drun::cli
