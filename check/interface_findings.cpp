#include "check/interface_findings.h"

#include <algorithm>
#include <utility>

#include "base/text.h"
#include "netdetect/wording.h"

namespace drun::check {

std::vector<Finding> interface_findings(const InterfaceView& view) {
  std::vector<Finding> out;
  find_unused_interfaces(view, out);
  find_chosen_interfaces(view, out);
  return out;
}

void add_group(Severity severity, const char* code, InterfaceGroup group, std::string text, std::string command,
               std::vector<Finding>& out) {
  if (group.hosts.empty()) return;
  Finding finding;
  finding.severity = severity;
  finding.code = code;
  finding.subject = list_some(group.interfaces, netdetect::kHostsShown);
  std::sort(group.hosts.begin(), group.hosts.end());
  group.hosts.erase(std::unique(group.hosts.begin(), group.hosts.end()), group.hosts.end());
  finding.hosts = std::move(group.hosts);
  finding.text = std::move(text);
  if (group.details.size() > kInterfaceDetails + 1) {
    const std::size_t n_more = group.details.size() - kInterfaceDetails;
    group.details.resize(kInterfaceDetails);
    group.details.push_back("and " + std::to_string(n_more) + " more");
  }
  finding.details = std::move(group.details);
  finding.command = std::move(command);
  out.push_back(std::move(finding));
}

std::string nic_speed_text(int mbps) { return mbps > 0 ? std::to_string(mbps) + " Mb/s" : "speed unknown"; }

}  // namespace drun::check
