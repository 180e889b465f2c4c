// A finding of a check: a fact that the user should know or fix. Pure data; docs/check.md explains every code.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace drun::check {

enum class Severity : std::uint8_t {
  kNote,     // worth knowing, nothing to fix
  kWarning,  // a job runs, but slower, or with a risk
  kFailure,  // a job will not run on this host, or not with these hosts together
};

struct Finding {
  Severity severity = Severity::kNote;
  std::string code;        // "link-slow": stable, kebab case; the heading in docs/check.md
  std::vector<int> hosts;  // indices of the hosts that it is about; empty: the cluster as a whole
  std::string subject;     // "host2", "host2 eth1", "host1 to host2"
  std::string text;        // lower case, no full stop, with figures and units: "moves 9.4 Mb/s, the median is 941 Mb/s"
  std::vector<std::string> details;     // the evidence, a line each; may be empty
  std::vector<std::string> comparison;  // the same figures of others, measured the same way; may be empty
  std::string command;                  // fixes or investigates it, as typed; may be empty
};

// Ready, ready with warnings, not ready.
enum class Verdict : std::uint8_t { kReady, kWarnings, kNotReady };

inline Verdict verdict_of(Severity worst) {
  return worst == Severity::kFailure   ? Verdict::kNotReady
         : worst == Severity::kWarning ? Verdict::kWarnings
                                       : Verdict::kReady;
}

// Sorts the worst first; equal findings keep their order.
inline void sort_findings(std::vector<Finding>& findings) {
  std::stable_sort(findings.begin(), findings.end(),
                   [](const Finding& a, const Finding& b) { return a.severity > b.severity; });
}

}  // namespace drun::check
