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

std::size_t n_gpus(const check::CheckedHost& host) { return host.facts ? host.facts->gpus.size() : 0; }

// "8 GPUs (NVIDIA H100), 64 processors".
std::string description(const check::CheckedHost& host) {
  if (!host.facts) return "";
  std::vector<std::string> parts;
  if (n_gpus(host) > 0) {
    const std::string& name = host.facts->gpus.front().name;
    parts.push_back(plural(n_gpus(host), "GPU") + (name.empty() ? "" : " (" + name + ")"));
  }
  if (host.facts->n_cpus > 0) parts.push_back(plural(static_cast<std::size_t>(host.facts->n_cpus), "processor"));
  return clean_line(join(parts, ", "));
}

// As in the list of -H: "me@a:8", "a:gpus=0,2".
std::string item_of(const Host& host) {
  const std::string item = launcher::to_item(host, host.slots);
  return host.gpus.empty() ? item : item.substr(0, item.rfind(':')) + ":gpus=" + join(host.gpus, ",");
}

}  // namespace

std::vector<Host> with_gpu_slots(std::vector<Host> hosts, const check::CheckResult& result) {
  for (std::size_t i = 0; i < hosts.size() && i < result.hosts.size(); ++i) {
    const std::size_t n = n_gpus(result.hosts[i]);
    if (!hosts[i].slots_given && hosts[i].gpus.empty() && n > 0) hosts[i].slots = static_cast<int>(n);
  }
  return hosts;
}

ConfigLine hosts_line(const std::vector<Host>& hosts, const check::CheckResult& result) {
  std::vector<ListItem> items;
  for (std::size_t i = 0; i < hosts.size(); ++i) {
    items.push_back({item_of(hosts[i]), i < result.hosts.size() ? description(result.hosts[i]) : std::string()});
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
