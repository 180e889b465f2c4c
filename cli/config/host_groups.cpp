#include "cli/config/host_groups.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "base/text.h"
#include "cli/config/config_rules.h"
#include "launcher/plan/hostlist.h"

namespace drun::cli {

namespace {

using Shape = ConfigEntry::Shape;

constexpr const char* kDefault = "default";
constexpr const char* kHostsKey = "hosts";
constexpr char kMark = '@';

std::string place_of(const std::string& file, int line, const std::string& group) {
  return file + ":" + std::to_string(line) + ": 'hosts." + group + "'";
}

bool is_name(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-' ||
           c == '.';
  });
}

// Calls `take` for each item between commas.
template <typename Take>
void for_each_item(const std::vector<std::string>& list, Take take) {
  for (const auto& part : list) {
    for (const auto item : split(part, ',')) take(item);
  }
}

bool is_group(std::string_view item) { return !trim(item).empty() && trim(item).front() == kMark; }

Error unknown_group(const std::string& name, const std::vector<HostGroup>& groups) {
  const std::string cause = "there is no group @" + name;
  if (groups.empty()) {
    return Error(Errc::kUsage, "-H", cause + ": no drun.toml that was read has groups of hosts")
        .with_hint("hosts." + (is_name(name) ? name : "NAME") + " = [\"host1:8\"] in drun.toml");
  }
  std::vector<std::string> names;
  std::transform(groups.begin(), groups.end(), std::back_inserter(names), [](const auto& one) { return one.name; });
  std::sort(names.begin(), names.end());
  Error error(Errc::kUsage, "-H", cause + " among @" + join(names, ", @"));
  const auto colon = name.find(':');
  if (colon != std::string::npos && std::count(names.begin(), names.end(), name.substr(0, colon)) > 0) {
    error.hint = "-H @" + name.substr(0, colon) + "; its hosts have their slots in " + groups.front().file;
  } else if (const auto near = nearest(name, names)) {
    error.hint = "-H @" + *near;
  }
  return error;
}

Result<void> check_hosts(const HostGroup& group) {
  const std::string place = place_of(group.file, group.line, group.name);
  if (!groups_in(group.hosts).empty()) return fail(Errc::kUsage, place, "a group can't contain another group");
  auto hosts = launcher::parse_hostlist(join(group.hosts, ","));
  if (hosts) return {};
  Error error = std::move(hosts.error());
  error.subject = place;
  return fail(std::move(error));
}

}  // namespace

Result<HostTable> read_host_table(const ConfigEntry& table, const std::string& file) {
  HostTable out;
  for (const auto& child : table.children) {
    const std::string place = place_of(file, child.line, child.key);
    if (!is_name(child.key)) return fail(Errc::kUsage, place, "the name of a group has letters, digits, '_', '-', '.'");
    const ConfigEntry* hosts = &child;
    if (child.shape == Shape::kTable) {
      const auto is_other = [](const ConfigEntry& entry) { return entry.key != kHostsKey; };
      const auto other = std::find_if(child.children.begin(), child.children.end(), is_other);
      if (other != child.children.end()) {
        return fail(
            Error(Errc::kUsage, place_of(file, other->line, child.key), "unknown key '" + other->key + "' of a group")
                .with_hint("hosts = [\"host1:8\"]"));
      }
      if (child.children.empty()) return fail(Errc::kUsage, place, "the key hosts is missing");
      hosts = &child.children.front();
    }
    const auto is_text = [](const ConfigValue& value) { return value.kind == ConfigValue::Kind::kText; };
    if (hosts->values.empty() || !std::all_of(hosts->values.begin(), hosts->values.end(), is_text)) {
      const bool is_option = find_rule(child.key) != nullptr;
      return fail(Error(Errc::kUsage, place, "needs a list of hosts")
                      .with_hint(is_option ? "options stand above the first [table] of the file"
                                           : "[\"host1:8\", \"host2:8\"]"));
    }
    HostGroup group;
    group.name = child.key;
    group.file = file;
    group.line = hosts->line;
    std::transform(hosts->values.begin(), hosts->values.end(), std::back_inserter(group.hosts),
                   [](const ConfigValue& value) { return value.text; });
    out.groups.push_back(std::move(group));
    if (child.key != kDefault) continue;
    out.chosen = *hosts;
    out.chosen->key = kHostsKey;
  }
  return out;
}

std::vector<std::string> groups_in(const std::vector<std::string>& list) {
  std::vector<std::string> out;
  for_each_item(list, [&out](std::string_view item) {
    if (is_group(item)) out.emplace_back(trim(item).substr(1));
  });
  return out;
}

Result<std::vector<std::string>> expand_groups(const std::vector<std::string>& list,
                                               const std::vector<HostGroup>& groups) {
  for (const auto& name : groups_in(list)) {
    const auto named = [&name](const HostGroup& group) { return group.name == name; };
    const auto found = std::find_if(groups.begin(), groups.end(), named);
    if (found == groups.end()) return fail(unknown_group(name, groups));
    if (auto ok = check_hosts(*found); !ok) return fail(std::move(ok.error()));
  }
  std::vector<std::string> out;
  for_each_item(list, [&](std::string_view item) {
    if (!is_group(item)) {
      out.emplace_back(item);
      return;
    }
    const auto named = [&item](const HostGroup& group) { return group.name == trim(item).substr(1); };
    const auto& hosts = std::find_if(groups.begin(), groups.end(), named)->hosts;
    out.insert(out.end(), hosts.begin(), hosts.end());
  });
  return out;
}

}  // namespace drun::cli
