// Hosts as text, for tables of expected host lists and hostfiles.
#pragma once

#include <string>
#include <vector>

#include "base/host.h"

namespace drun::launcher {

// Returns "user@name%port:slots/max" without the parts that are not set. The slots are always there, after "~" if not
// given.
inline std::string host_text(const Host& h) {
  std::string out = h.user.empty() ? "" : h.user + "@";
  out += h.name;
  if (h.port > 0) out += "%" + std::to_string(h.port);
  out += (h.slots_given ? ":" : "~") + std::to_string(h.slots);
  if (h.max_slots > 0) out += "/" + std::to_string(h.max_slots);
  return out;
}

inline std::string hosts_text(const std::vector<Host>& hosts) {
  std::string out;
  for (const auto& h : hosts) out += (out.empty() ? "" : " ") + host_text(h);
  return out;
}

}  // namespace drun::launcher
