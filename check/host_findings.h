// Finds problems of hosts and differences between them, by majority vote and by limits usual in the field. Pure.
// docs/check.md explains every code.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "check/finding.h"
#include "check/finding_list.h"
#include "control/host_facts.h"

namespace drun::check {

struct ExaminedHost {
  std::string name;   // as the user wrote it
  std::string login;  // launcher::TypedLogin::words
  int slots = 1;
  const control::HostFacts* facts = nullptr;    // null: the host could not be asked, and is left out
  std::optional<std::int64_t> clock_offset_ms;  // its wall clock - drun's; wall_clock.h
  std::string interface, address;               // the chosen ones; "" = none
};

struct HostQuestion {
  std::string script;        // the first argument of the command that is not an option; may be empty
  bool has_command = false;  // the command of a job was given
  std::map<std::string, std::string> environment;  // drun's own, which goes to the workers
};

// Hosts of the findings are indices into `hosts`. Worst first.
std::vector<Finding> host_findings(const std::vector<ExaminedHost>& hosts, const HostQuestion& question);

// Parts of host_findings().

void find_drift(const std::vector<ExaminedHost>& hosts, const HostQuestion& question, FindingList& out);
void find_clocks(const std::vector<ExaminedHost>& hosts, FindingList& out);
void find_limits(const std::vector<ExaminedHost>& hosts, const HostQuestion& question, FindingList& out);
void find_gpu_trouble(const std::vector<ExaminedHost>& hosts, FindingList& out);
void find_nic_trouble(const std::vector<ExaminedHost>& hosts, FindingList& out);
void find_settings(const std::vector<ExaminedHost>& hosts, const HostQuestion& question, FindingList& out);

// "512 MiB", "1.5 GiB".
std::string mib_text(std::int64_t mib);

// True if a no_proxy list covers this host. Understands exact names and addresses, ".domain", "*", IPv4 networks.
bool no_proxy_covers(const std::string& no_proxy, const std::string& name, const std::string& address);

}  // namespace drun::check
