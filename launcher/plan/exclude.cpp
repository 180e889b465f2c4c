#include "launcher/plan/exclude.h"

#include <algorithm>
#include <iterator>
#include <map>

#include "base/error_id.h"
#include "base/text.h"
#include "launcher/plan/host_item.h"
#include "launcher/plan/hostlist.h"

namespace drun::launcher {
namespace {

constexpr std::size_t kMaxShown = 8;  // hosts, in a message
constexpr std::size_t kShort = 3;     // characters of a name that resembles too many others

tl::unexpected<Error> refused(const std::string& cause, const std::string& hint) {
  return fail(Error(Errc::kUsage, "--exclude", cause).with_hint(hint).with_id(error_id::kHostList));
}

std::string list_of(const std::vector<Host>& hosts) {
  const auto n = std::min(hosts.size(), kMaxShown);
  std::vector<std::string> names;
  std::transform(hosts.begin(), hosts.begin() + static_cast<std::ptrdiff_t>(n), std::back_inserter(names),
                 [](const Host& host) { return to_item(host); });
  const std::string others = hosts.size() > n ? " and " + plural(hosts.size() - n, "other") : "";
  return join(names, ", ") + others;
}

// True for DeepSpeed's "w1:0@w2:0".
bool are_several(std::string_view item) {
  const auto at = item.rfind('@');
  return at != std::string_view::npos && item.find(':') < at;
}

// True if the item has slots (":0", ":2") or GPUs.
bool has_slots(std::string_view item) {
  if (item.find(kGpusKey) != std::string_view::npos || are_several(item)) return true;
  const std::string_view host = item.substr(item.rfind('@') + 1);  // the whole item without '@'
  const auto colon = host.rfind(':'), bracket = host.rfind(']');
  if (colon == std::string_view::npos || !parse_number(host.substr(colon + 1))) return false;
  return bracket == std::string_view::npos ? host.find(':') == colon : bracket < colon;
}

std::string without_slots(std::string_view item) {
  std::vector<std::string> names;
  for (const auto part : split(item, '@')) {
    const auto bracket = part.rfind(']');
    names.emplace_back(part.substr(0, part.find(':', bracket == std::string_view::npos ? 0 : bracket)));
  }
  return join(names, are_several(item) ? "," : "@");
}

// The name with '#' before each number, which has no leading zeros ("n#7" of "n07"), or is left out ("n#").
std::string numbered(const std::string& name, bool with_numbers) {
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  std::string out;
  for (auto at = name.begin(); at != name.end();) {
    const auto end = std::find_if_not(at, name.end(), is_digit);
    if (at == end) {
      out += *at++;
      continue;
    }
    out += '#';
    const auto first = std::find_if(at, end - 1, [](char c) { return c != '0'; });
    if (with_numbers) out.append(first, end);
    at = end;
  }
  return out;
}

std::string short_name(const std::string& name) { return name.substr(0, name.find('.')); }

// True for "n1" and "n1.x.org", in lower case: one of both has a domain. Addresses have none.
bool differ_in_domain(const std::string& a, const std::string& b) {
  const auto has_domain = [](const std::string& name) { return name.find('.') != std::string::npos; };
  const std::string name = short_name(a);
  const bool has_letter = std::any_of(name.begin(), name.end(), [](char c) { return c >= 'a' && c <= 'z'; });
  return has_domain(a) != has_domain(b) && name == short_name(b) && has_letter;
}

// A hint at a name that was probably meant, or "". node1 is no misspelling of node5, which would be another machine.
std::string probably_meant(const Host& out, const std::vector<Host>& hosts) {
  std::vector<std::string> same, near;
  for (const auto& host : hosts) {
    if (!out.user.empty() && host.name == out.user) return "commas between hosts: " + out.user + "," + out.name;
    const std::string name = lower(host.name), typed = lower(out.name);
    if (name == typed || differ_in_domain(name, typed)) same.push_back("--exclude " + to_item(host));
    const bool differs = numbered(host.name, true) != numbered(out.name, true);
    if (differs && numbered(host.name, false) == numbered(out.name, false)) continue;
    near.push_back(host.name);
  }
  if (!same.empty()) return join(same, ", or ");
  if (out.name.size() <= kShort) return "";
  const auto name = nearest(out.name, near);
  return name ? "--exclude " + *name : "";
}

// The places of hosts by their names.
class Places {
 public:
  explicit Places(const std::vector<Host>& hosts) : hosts_(hosts) {
    for (std::size_t i = 0; i < hosts.size(); ++i) {
      const std::string name = lower(hosts[i].name);
      by_name_[name].push_back(i);
      if (!hosts[i].job.empty()) by_short_name_[short_name(name)].push_back(i);
    }
  }

  std::vector<std::size_t> of(const std::string& typed) const {
    const std::string name = lower(typed);
    const auto found = by_name_.find(name);
    if (found != by_name_.end()) return found->second;
    const auto near = by_short_name_.find(short_name(name));
    if (near == by_short_name_.end()) return {};
    std::vector<std::size_t> out;
    std::copy_if(near->second.begin(), near->second.end(), std::back_inserter(out),
                 [&](std::size_t i) { return differ_in_domain(name, lower(hosts_[i].name)); });
    return out.size() == 1 ? out : std::vector<std::size_t>{};
  }

 private:
  const std::vector<Host>& hosts_;
  std::map<std::string, std::vector<std::size_t>> by_name_, by_short_name_;
};

}  // namespace

Result<std::vector<Host>> parse_excluded(std::string_view item) {
  item = trim(item);
  if (item.empty()) return refused("an item is empty", "--exclude b,n[03-05]");
  if (has_slots(item)) {
    return refused("'" + std::string(item) + "': whole hosts are left out, not slots or GPUs",
                   "--exclude " + without_slots(item) + "; or -H with the slots or GPUs that stay");
  }
  auto hosts = host_item(item, "--exclude");
  if (hosts) return std::move(*hosts);
  return refused(
      "'" + std::string(item) + "', column " + std::to_string(hosts.error().offset + 1) + ": " + hosts.error().cause,
      hosts.error().hint);
}

Result<std::vector<Host>> leave_out(std::vector<Host> hosts, const std::vector<Host>& excluded) {
  const Places places(hosts);
  std::vector<bool> stays(hosts.size(), true);
  for (const auto& out : excluded) {
    bool is_there = false;
    for (const auto i : places.of(out.name)) {
      if (!out.user.empty() && out.user != hosts[i].user) continue;
      is_there = true;
      stays[i] = false;
    }
    if (!is_there)
      return refused(to_item(out) + " is not among the hosts: " + list_of(hosts), probably_meant(out, hosts));
  }
  if (std::find(stays.begin(), stays.end(), true) == stays.end()) {
    return refused("no host is left of " + list_of(hosts), "");
  }
  std::vector<Host> left;
  for (std::size_t i = 0; i < hosts.size(); ++i) {
    if (stays[i]) left.push_back(std::move(hosts[i]));
  }
  return left;
}

}  // namespace drun::launcher
