// What measured links say about hosts, cables and paths. Pure. docs/check.md has the thresholds and every code.
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

// What is known of a host before its links are measured; by host index.
struct LinkHost {
  std::string name;       // as the user wrote it
  std::string interface;  // the chosen one; "" = none: the host has no links
  std::string kind;       // as Interface has it
  int mtu = 0;            // 0: unknown
  int speed_mbps = 0;     // 0: unknown
  // Its boot id: hosts with the same one are containers of one machine, and their links are its processor. "" =
  // unknown.
  std::string machine;
};

LinkHost link_host(std::string name, std::string machine, const std::optional<netdetect::HostChoice>& choice,
                   const std::vector<netdetect::Interface>& interfaces);

// Whether all hosts with links are containers of one machine.
bool on_one_machine(const std::vector<LinkHost>& hosts);

// Without the pairs of containers of one machine, which move what its memory does and are no measure for others; all of
// them if there are no others.
std::vector<netdetect::Link> between_machines(const std::vector<LinkHost>& hosts,
                                              const std::vector<netdetect::Link>& links);

// The pairs to measure again, alone, in this order, so that verdicts name hosts: suspects with hosts that look good,
// and good ones with each other, to compare with. A pair between two good hosts that looks bad comes twice. Empty:
// nothing looks bad. `also` are wanted by others (a baseline). At most `limit` pairs; negative: twice the number of
// hosts. What comes first is of use without the rest.
std::vector<std::pair<int, int>> pairs_to_repeat(const std::vector<LinkHost>& hosts,
                                                 const std::vector<netdetect::Link>& first_pass,
                                                 const std::vector<std::pair<int, int>>& also = {}, int limit = -1);

// What only the first pass shows is no finding, unless there was no second one and all links of a host are ten times
// slower than others.
std::vector<Finding> link_findings(const std::vector<LinkHost>& hosts, const netdetect::LinkReport& report);

}  // namespace drun::check
