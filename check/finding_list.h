// Collects findings on hosts; a finding that several hosts share becomes one. Pure.
#pragma once

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "base/text.h"
#include "check/finding.h"

namespace drun::check {

// "host1", "host1 and host2", "host1, host2 and 14 other hosts", "all 16 hosts".
inline std::string hosts_text(const std::vector<int>& hosts, const std::vector<std::string>& names) {
  constexpr std::size_t kMaxNames = 4;
  if (hosts.size() == names.size() && hosts.size() > 2) return "all " + plural(hosts.size(), "host");
  std::string out;
  const std::size_t n_named = hosts.size() <= kMaxNames ? hosts.size() : 2;
  for (std::size_t i = 0; i < n_named; ++i) {
    const bool last = i + 1 == hosts.size();
    out += (i == 0 ? "" : last ? " and " : ", ") + names[static_cast<std::size_t>(hosts[i])];
  }
  return n_named == hosts.size() ? out : out + " and " + plural(hosts.size() - n_named, "other host");
}

class FindingList {
 public:
  explicit FindingList(std::vector<std::string> names) : names_(std::move(names)) {}

  // Adds a finding on one host. Findings that differ only in their host become one, with the details of all.
  void add(Severity severity, std::string code, int host, std::string text, std::string command = "",
           std::vector<std::string> details = {}) {
    for (auto& f : findings_) {
      if (f.severity != severity || f.code != code || f.text != text || f.command != command || f.hosts.empty())
        continue;
      if (std::find(f.hosts.begin(), f.hosts.end(), host) == f.hosts.end()) f.hosts.push_back(host);
      for (auto& d : details) {
        if (std::find(f.details.begin(), f.details.end(), d) == f.details.end()) f.details.push_back(std::move(d));
      }
      return;
    }
    Finding f;
    f.severity = severity;
    f.code = std::move(code);
    f.hosts = {host};
    f.text = std::move(text);
    f.details = std::move(details);
    f.command = std::move(command);
    findings_.push_back(std::move(f));
  }
  // Adds a finding on hosts together. If `hosts` is empty, it is on the whole cluster, and `subject` must be set.
  void add_shared(Finding finding) { findings_.push_back(std::move(finding)); }

  std::string hosts_text(const std::vector<int>& hosts) const { return check::hosts_text(hosts, names_); }

  std::vector<Finding> take() {
    for (auto& f : findings_) {
      if (f.subject.empty()) f.subject = hosts_text(f.hosts);
    }
    sort_findings(findings_);
    return std::move(findings_);
  }

 private:
  std::vector<std::string> names_;
  std::vector<Finding> findings_;
};

}  // namespace drun::check
