#include "launcher/plan/allocation_words.h"

#include <algorithm>

#include "base/text.h"
#include "launcher/plan/hostlist.h"

namespace drun::launcher {

std::string value_of(const Environment& env, const std::string& name) {
  const auto found = env.find(name);
  return found == env.end() ? "" : found->second;
}

std::string first_of(const Environment& env, std::initializer_list<const char*> names) {
  for (const char* name : names) {
    if (std::string value = value_of(env, name); !value.empty()) return value;
  }
  return "";
}

std::string list_of(const std::vector<Host>& hosts, std::size_t most) {
  std::vector<std::string> items;
  for (std::size_t i = 0; i < std::min(most, hosts.size()); ++i) items.push_back(to_item(hosts[i], hosts[i].slots));
  return join(items, ",");
}

std::string short_list(const std::vector<Host>& hosts) {
  return hosts.size() > kMaxShown ? "" : list_of(hosts, kMaxShown);
}

std::string list_hint(const std::string& list) {
  return "-H " + (list.empty() ? "host1:2,host2:2" : list) + ", or -H localhost for this machine alone";
}

}  // namespace drun::launcher
