// Findings on hosts, cables and paths from measured links. Pure. docs/check.md has the thresholds and every code.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "check/finding.h"
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

// The pairs to measure again, one at a time, in this order, so that verdicts name hosts: anomalies with hosts that
// poll good, and good hosts with each other, to compare with. A pair between two good hosts that looks bad comes
// twice. Empty: nothing looks bad. `also`: pairs to include in any case (from a baseline). At most `limit` pairs;
// negative: twice the number of hosts. The first pairs are useful without the rest.
std::vector<std::pair<int, int>> pairs_to_repeat(const std::vector<LinkHost>& hosts,
                                                 const std::vector<netdetect::Link>& first_pass,
                                                 const std::vector<std::pair<int, int>>& also = {}, int limit = -1);

// A problem that only the first pass shows is no finding, unless a host was not measured again and the first pass is
// clear: all its links are ten times slower than usual, or its paced streams lost much; or its connections broke off
// in the second pass.
std::vector<Finding> link_findings(const std::vector<LinkHost>& hosts, const netdetect::LinkReport& report);

}  // namespace drun::check
