// A one-line description of the chosen network. Pure.
#pragma once

#include <string>
#include <vector>

#include "netdetect/choose.h"

namespace drun::launcher {

// "network 10.77.0.0/24: enp3s0 on localhost, eth1 on host1 and host2"; longer lists are counted. Empty for one host,
// and for hosts that need no network between them. `names` and `hosts` have the same order.
std::string network_in_short(const std::vector<std::string>& names, const std::vector<netdetect::HostChoice>& hosts);

}  // namespace drun::launcher
