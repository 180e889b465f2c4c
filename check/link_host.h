// The hosts of links as the judgement of links sees them. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "netdetect/choose.h"
#include "netdetect/interface.h"
#include "netdetect/link.h"

namespace drun::check {

// The properties of a host that are known before its links are measured. Vectors of it are by host index.
struct LinkHost {
  std::string name;       // as the user wrote it
  std::string interface;  // the chosen one; "" = none: the host has no links
  std::string kind;       // as in netdetect::Interface
  int mtu = 0;            // 0: unknown
  int speed_mbps = 0;     // 0: unknown
  // Its boot id: hosts with the same one are containers of one machine, whose processor carries the links between
  // them. "" = unknown.
  std::string machine;
};

LinkHost link_host(std::string name, std::string machine, const std::optional<netdetect::HostChoice>& choice,
                   const std::vector<netdetect::Interface>& interfaces);

// True if all hosts with links are containers of one machine.
bool on_one_machine(const std::vector<LinkHost>& hosts);

// The links without pairs of containers of one machine, which run at memory speed and can't be compared with others.
// If all hosts are on one machine, all links.
std::vector<netdetect::Link> between_machines(const std::vector<LinkHost>& hosts,
                                              const std::vector<netdetect::Link>& links);

}  // namespace drun::check
