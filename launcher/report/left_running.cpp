#include "launcher/report/left_running.h"

#include <algorithm>

#include "base/text.h"
#include "base/wording.h"

namespace drun::launcher {

namespace {

constexpr std::size_t kMaxNames = 3;

// "a (x)", "a, b and c (x, y)", "5 hosts (x)".
std::string where(const std::vector<LeftRunning>& hosts) {
  std::vector<std::string> names;
  for (const auto& host : hosts) {
    if (host.name.empty() || std::find(names.begin(), names.end(), host.name) != names.end()) continue;
    if (names.size() == kMaxNames) {
      names.emplace_back("...");
      break;
    }
    names.push_back(host.name);
  }
  std::vector<std::string> shown;
  for (const auto& host : hosts) shown.push_back(host.host);
  const std::string out = shown.size() > kMaxNames ? plural(shown.size(), "host") : list_some(shown, kMaxNames);
  return names.empty() ? out : out + " (" + join(names, ", ") + ")";
}

}  // namespace

std::string left_running_text(const std::vector<LeftRunning>& hosts) {
  std::size_t n = 0;
  for (const auto& host : hosts) n += host.n_processes;
  return "ended " + plural(n, "process") + " that the workers had left in the background on " + where(hosts) +
         ": a job is over when its workers are. What has to go on must stay in the foreground, or be started without "
         "drun";
}

std::string unconfirmed_text(const std::vector<std::string>& hosts) {
  return join(hosts, ", ") + " did not confirm that all its workers have ended";
}

}  // namespace drun::launcher
