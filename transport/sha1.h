// SHA-1 for the hashed names of known_hosts, whose format requires it. Not for security.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace drun::transport {

std::string sha1(std::string_view bytes);                             // 20 bytes
std::string hmac_sha1(std::string_view key, std::string_view bytes);  // 20 bytes

std::string base64(std::string_view bytes);
// Empty if `text` is not base64.
std::string unbase64(std::string_view text);

}  // namespace drun::transport
