// The line rate of a NIC, as the kernel reports it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace drun::bench {

// In bits per second; nothing if unknown. Of virtual interfaces only bonds, and those on top of one other interface
// (a VLAN), have a meaningful rate: a veth reports 10 Gb/s on any machine. `sysfs`: /sys.
std::optional<std::uint64_t> line_rate(const std::string& sysfs, const std::string& interface_name);

}  // namespace drun::bench
