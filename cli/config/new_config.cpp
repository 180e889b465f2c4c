#include "cli/config/new_config.h"

#include <utility>

#include "base/clean_text.h"
#include "base/text.h"
#include "base/wording.h"
#include "check/chosen_networks.h"
#include "cli/check_report/view.h"
#include "launcher/plan/hostlist.h"

namespace drun::cli {

namespace {

constexpr std::size_t kMaxNamed = 4;  // hosts in a comment

// The facts that the check has about the host, nullptr if none. The name finds them: the check puts hosts that it did
// not reach behind the others, and has one name of a machine with several.
const control::HostFacts* facts_of(const Host& host, const check::CheckResult& result) {
  for (const auto& checked : result.hosts) {
    if (checked.name == host.name && checked.facts) return &*checked.facts;
  }
  return nullptr;
}

// "8 GPUs (NVIDIA H100), 64 processors".
std::string description(const control::HostFacts& facts) {
  std::vector<std::string> parts;
  if (!facts.gpus.empty()) {
    const std::string& name = facts.gpus.front().name;
    parts.push_back(plural(facts.gpus.size(), "GPU") + (name.empty() ? "" : " (" + name + ")"));
  }
  if (facts.n_cpus > 0) parts.push_back(plural(static_cast<std::size_t>(facts.n_cpus), "processor"));
  return clean_line(join(parts, ", "));
}

// As in the list of -H: "me@a:8", "a:gpus=0,2".
std::string item_of(const Host& host) {
  const std::string item = launcher::to_item(host, host.slots);
  return host.gpus.empty() ? item : item.substr(0, item.rfind(':')) + ":gpus=" + join(host.gpus, ",");
}

}  // namespace

std::vector<Host> with_gpu_slots(std::vector<Host> hosts, const check::CheckResult& result) {
  for (Host& host : hosts) {
    const auto* facts = facts_of(host, result);
    const bool is_meant = !host.slots_given && host.gpus.empty() && facts != nullptr && !facts->gpus.empty();
    if (is_meant) host.slots = static_cast<int>(facts->gpus.size());
  }
  return hosts;
}

ConfigLine hosts_line(const std::vector<Host>& hosts, const check::CheckResult& result) {
  std::vector<ListItem> items;
  for (const Host& host : hosts) {
    const auto* facts = facts_of(host, result);
    items.push_back({item_of(host), facts != nullptr ? description(*facts) : std::string()});
  }
  return {"hosts", toml_list(items), {}};
}

std::optional<ConfigLine> networks_line(const check::CheckResult& result) {
  const auto networks = check::chosen_networks(result);
  if (networks.empty()) return std::nullopt;
  ConfigLine out{"network-interfaces", "", {}};
  std::vector<ListItem> items;
  for (const auto& [network, hosts_by_nic] : networks) {
    std::vector<std::string> places;
    for (const auto& [nic, hosts] : hosts_by_nic)
      places.push_back(nic + " on " + list_some(hosts, kMaxNamed, "others"));
    items.push_back({network, ""});
    out.comments.push_back(clean_line(network + ": " + join(places, ", ")));
  }
  out.value = toml_list(items);
  return out;
}

std::string check_remark(const check::CheckResult& result) {
  return clean_line("Its check of the hosts: " + verdict_text(result.verdict) + "; " + findings_sentence(result) + ".");
}

}  // namespace drun::cli
