// How fast a NIC's line is, as the kernel says.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace drun::bench {

// In bits per second; nothing where it is not known. Of what is no hardware only bonds, and what lies upon one other
// interface (a VLAN), have a rate that means something: a veth says 10 Gb/s whatever the machine is. `sysfs`: /sys.
std::optional<std::uint64_t> line_rate(const std::string& sysfs, const std::string& interface_name);

}  // namespace drun::bench
