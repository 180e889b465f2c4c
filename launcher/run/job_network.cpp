#include "launcher/run/job_network.h"

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "launcher/network/network_speed.h"
#include "launcher/network/network_text.h"

namespace drun::launcher {

namespace {
constexpr auto kSpeedTransfer = std::chrono::milliseconds(50);  // on a network whose speed no driver tells
}

Task<Result<void>> JobNetwork::find(std::vector<AgentChannel*> hosts, int head, std::vector<std::string> interfaces,
                                    std::optional<NetworkProbe> known, Deadline deadline) {
  Result<NetworkProbe> found = NetworkProbe();
  if (known) {
    found = std::move(*known);
  } else {
    found = co_await probe(hosts, head, std::move(interfaces), deadline);
  }
  if (!found) co_return fail(std::move(found.error()));
  cache_key_ = found->cache_key;
  for (const auto& r : found->candidates.rejected) {
    log::debug(hosts[static_cast<std::size_t>(r.host)]->name() + ": " + r.interface + " " + r.address + ": " +
               r.reason);
  }
  auto choice = found->choice();
  if (!choice) co_return fail(std::move(choice.error()));
  choice_ = std::move(*choice);
  report(hosts, *found);
  co_return Result<void>();
}

// A new result goes into the cache, with the speeds of networks whose drivers report none.
Task<Result<NetworkProbe>> JobNetwork::probe(std::vector<AgentChannel*> hosts, int head,
                                             std::vector<std::string> interfaces, Deadline deadline) {
  auto found =
      co_await probe_network(io_, hosts, head, interfaces, deadline, &watch_, reads_cache_ ? &cache_ : nullptr);
  if (!found || found->age) co_return found;
  bool speeds_known = true;
  if (found->choice()) {
    LinkCheck links(io_, hosts, found->most.choice, quick_link_times());
    std::vector<int> gone;
    speeds_known = co_await choose_by_speed(*found, links, std::move(gone), kSpeedTransfer, deadline);
    for (const auto& note : links.notes()) log::info(note);
  }
  if (speeds_known) keep(cache_, *found);
  co_return found;
}

void JobNetwork::report(const std::vector<AgentChannel*>& hosts, const NetworkProbe& probe) {
  for (const auto& note : choice_.notes) log::info(note);
  if (probe.age) {
    log::info("network: as found " + std::to_string(probe.age->count()) + " s ago; --no-cache tries again");
  }
  // For a user at a terminal. Scripts that read stderr find it with -v, and in --events.
  if (reporter_.status_width() > 0) {
    std::vector<std::string> names;
    for (const AgentChannel* host : hosts) names.push_back(host->name());
    if (const std::string in_short = network_in_short(names, choice_.hosts); !in_short.empty())
      reporter_.note(in_short);
  }
  for (const auto& warning : choice_.warnings) reporter_.warning(warning);
  for (std::size_t i = 0; i < hosts.size(); ++i) {
    const auto& host = choice_.hosts[i];
    log::info(hosts[i]->name() + ": using " + host.interface + " (" + host.address.text() + ")");
    events_.interface_chosen(hosts[i]->name(), host.interface, host.address.text(), host.interfaces,
                             probe.age.has_value());
  }
}

int JobNetwork::reached_by_all() const {
  const auto found =
      std::find_if(choice_.hosts.begin(), choice_.hosts.end(), [](const auto& host) { return host.reached_by_all; });
  return found == choice_.hosts.end() ? -1 : static_cast<int>(found - choice_.hosts.begin());
}

void JobNetwork::move_to_front(int host) {
  const auto to_front = [host](auto& list) { std::rotate(list.begin(), list.begin() + host, list.begin() + host + 1); };
  to_front(choice_.hosts);
  to_front(choice_.reach);
  for (auto& row : choice_.reach) to_front(row);
}

void JobNetwork::forget() {
  if (!cache_key_.empty()) cache_.drop(cache_key_);
}

}  // namespace drun::launcher
