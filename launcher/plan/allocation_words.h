// Helpers that the scheduler readers share. Private to launcher/plan/allocation*.cpp.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <string>
#include <vector>

#include "base/host.h"
#include "launcher/plan/worker_env.h"

namespace drun::launcher {

// "" if the variable is not set.
std::string value_of(const Environment& env, const std::string& name);
// The value of the first variable that is set and not empty.
std::string first_of(const Environment& env, std::initializer_list<const char*> names);

inline constexpr std::size_t kMaxShown = 8;  // hosts, in a message

// "n1:3,n2:1", of the first `most` hosts.
std::string list_of(const std::vector<Host>& hosts, std::size_t most);
// The whole list; "" if it has more than kMaxShown hosts.
std::string short_list(const std::vector<Host>& hosts);
// A hint of what to type if the hosts are not known. `list`: the probable hosts, or "".
std::string list_hint(const std::string& list);

}  // namespace drun::launcher
