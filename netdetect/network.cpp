#include "netdetect/network.h"

#include <algorithm>
#include <cstddef>

#include "base/text.h"

namespace drun::netdetect {

std::optional<Address> parse_network(std::string_view text) {
  const std::size_t slash = text.find('/');
  Address address = parse_address(std::string(text.substr(0, slash)));
  if (address.bytes.empty()) return std::nullopt;
  if (slash == std::string_view::npos) return address;
  const auto length = parse_number(text.substr(slash + 1));
  if (!length || *length > address.bytes.size() * 8) return std::nullopt;
  address.prefix_length = static_cast<int>(*length);
  return network_of(address);
}

Address network_of(const Address& address) {
  Address network = address;
  const auto n_bits = static_cast<std::size_t>(std::max(address.prefix_length, 0));
  for (std::size_t i = 0; i < network.bytes.size(); ++i) {
    const std::size_t kept = n_bits <= i * 8 ? 0 : std::min<std::size_t>(8, n_bits - i * 8);
    const unsigned mask = (0xff00u >> kept) & 0xffu;
    network.bytes[i] = static_cast<char>(static_cast<unsigned char>(network.bytes[i]) & mask);
  }
  return network;
}

bool in_network(const Address& network, const Address& address) {
  if (network.bytes.size() != address.bytes.size()) return false;
  Address same_length = address;
  same_length.prefix_length = network.prefix_length;
  return network_of(same_length) == network_of(network);
}

std::string network_text(const Address& address) {
  return network_of(address).text() + "/" + std::to_string(address.prefix_length);
}

bool is_loopback(const Address& address) {
  if (address.bytes.size() == 4) return address.bytes[0] == 127;
  return address.bytes.size() == 16 && address.bytes == std::string(15, '\0') + '\1';
}

std::string only_loopback(const std::vector<std::string>& addresses) {
  const bool is_only = std::all_of(addresses.begin(), addresses.end(),
                                   [](const std::string& one) { return is_loopback(parse_address(one)); });
  return is_only && !addresses.empty() ? addresses.front() : "";
}

}  // namespace drun::netdetect
