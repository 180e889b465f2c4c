#include "transport/jump_host.h"

#include <algorithm>

#include "base/text.h"

namespace drun::transport {
namespace {

constexpr std::string_view kScheme = "ssh://";

// Takes "host", "host:port", "[host]" or "[host]:port" apart.
bool split_port(std::string_view text, JumpHost& out) {
  std::string_view rest;
  if (starts_with(text, "[")) {
    const auto end = text.find(']');
    if (end == std::string_view::npos) return false;
    out.host = text.substr(1, end - 1);
    rest = text.substr(end + 1);
  } else {
    const auto colon = std::min(text.find(':'), text.size());
    out.host = text.substr(0, colon);
    rest = text.substr(colon);
  }
  if (!rest.empty() && rest.front() != ':') return false;
  out.port = rest.substr(rest.empty() ? 0 : 1);
  return !out.host.empty() && out.port.find_first_of(":/") == std::string::npos;
}

}  // namespace

std::optional<JumpHost> parse_jump_host(std::string_view text) {
  JumpHost out;
  if (starts_with(text, kScheme)) {
    out.uri = text;
    text.remove_prefix(kScheme.size());
    if (!text.empty() && text.back() == '/') text.remove_suffix(1);
  }
  if (const auto at = text.rfind('@'); at != std::string_view::npos) {
    if (at == 0) return std::nullopt;
    out.user = text.substr(0, at);
    text.remove_prefix(at + 1);
  }
  if (!split_port(text, out)) return std::nullopt;
  return out;
}

}  // namespace drun::transport
