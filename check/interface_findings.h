// Findings of `drun check` on interfaces: which one each host got and why, and which look usable but are not. Pure.
#pragma once

#include <string>
#include <vector>

#include "check/finding.h"
#include "check/interface_view.h"

namespace drun::check {

// In no order; a caller sorts them with others.
std::vector<Finding> interface_findings(const InterfaceView& view);

// Parts of interface_findings(), which add to `out`.

void find_unused_interfaces(const InterfaceView& view, std::vector<Finding>& out);
void find_chosen_interfaces(const InterfaceView& view, std::vector<Finding>& out);

// Findings of the same kind about interfaces of several hosts become one.
struct InterfaceGroup {
  std::vector<int> hosts;
  std::vector<std::string> interfaces;  // "host0 eno2", in step with `hosts`
  std::vector<std::string> details;

  void add(const InterfaceView& view, int host, const std::string& nic) {
    hosts.push_back(host);
    interfaces.push_back(view.name(host) + " " + nic);
  }
};

// Adds one finding about the group; none if it is empty.
void add_group(Severity severity, const char* code, InterfaceGroup group, std::string text, std::string command,
               std::vector<Finding>& out);

constexpr std::size_t kInterfaceDetails = 12;  // lines of evidence of one finding

std::string nic_speed_text(int mbps);

}  // namespace drun::check
