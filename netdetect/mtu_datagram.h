// The datagrams by which an MTU is measured: a session as the nonce, a proof that the sender knows the token, zeros.
// Pure.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace drun::netdetect {

// A datagram of at least `n_bytes`, for the socket of `port`.
std::string mtu_datagram(std::string_view token, std::string_view session, int port, std::size_t n_bytes);
// True if it was made for the socket of `port` in this session.
bool is_mtu_datagram(std::string_view datagram, std::string_view token, std::string_view session, int port);

}  // namespace drun::netdetect
