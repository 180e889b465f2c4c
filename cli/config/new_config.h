// Lines of a new drun.toml about hosts that were checked. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/host.h"
#include "check/check_result.h"
#include "cli/config/config_writer.h"

namespace drun::cli {

// The hosts with their slots: those that were given, else a slot for each GPU that the host has, else 1. A comment says
// what the host is.
std::vector<Host> with_gpu_slots(std::vector<Host> hosts, const check::CheckResult& result);
ConfigLine hosts_line(const std::vector<Host>& hosts, const check::CheckResult& result);

// --network-interfaces: the networks of the chosen interfaces, with a comment that names these. Nothing for a single
// host, for hosts that share one network namespace, and if a host has no interface.
std::optional<ConfigLine> networks_line(const check::CheckResult& result);

// A line about the check, for the top of the file.
std::string check_remark(const check::CheckResult& result);

}  // namespace drun::cli
