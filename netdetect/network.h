// Addresses as networks: prefixes, containment, text. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "netdetect/interface.h"

namespace drun::netdetect {

// "10.0.0.0/8", "fd00::/16", or a single address; nothing if it is none of these.
std::optional<Address> parse_network(std::string_view text);

bool in_network(const Address& network, const Address& address);

// The first prefix_length bits of `address`, the rest zero.
Address network_of(const Address& address);

// "10.0.0.0/24"
std::string network_text(const Address& address);

// True for 127/8 and ::1, on any interface.
bool is_loopback(const Address& address);

// The first of the addresses of a host's name if all are loopback ones, so that no other host reaches it by them; else
// "".
std::string only_loopback(const std::vector<std::string>& addresses);

}  // namespace drun::netdetect
