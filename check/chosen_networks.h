// The networks of the interfaces that a check chose. Pure.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "check/check_result.h"

namespace drun::check {

struct ChosenNetwork {
  std::string network;                                           // "10.0.0.0/24"
  std::map<std::string, std::vector<std::string>> hosts_by_nic;  // names of hosts by that of their interface
};

// In the order of the hosts. Empty for a single host, for hosts that use loopback, and if a host has no interface.
std::vector<ChosenNetwork> chosen_networks(const CheckResult& result);

}  // namespace drun::check
