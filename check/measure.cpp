#include "check/measure.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "base/log.h"
#include "base/units.h"
#include "check/check_times.h"
#include "check/collect.h"
#include "check/link_repeat.h"
#include "launcher/network/link_tests.h"
#include "launcher/network/network_speed.h"

namespace drun::check {
namespace {

void log_step(const std::string& what, Deadline end) {
  log::debug(what + ", time left: " + time_text(end - Clock::now()));
}

// The hosts that have an interface and take part.
std::vector<int> measurable_hosts(const std::vector<launcher::AgentChannel*>& agents, const CheckResult& result) {
  const std::vector<int> gone = gone_hosts(agents, result);
  std::vector<int> out;
  for (std::size_t i = 0; i < result.hosts.size(); ++i) {
    const int host = static_cast<int>(i);
    if (result.hosts[i].choice && !std::binary_search(gone.begin(), gone.end(), host)) out.push_back(host);
  }
  return out;
}

std::vector<netdetect::HostPair> second_pass_pairs(const std::vector<launcher::AgentChannel*>& agents,
                                                   const Baseline* baseline, const CheckResult& result) {
  std::vector<netdetect::HostPair> also;
  if (baseline != nullptr) also = pairs_below_baseline(host_names(result), result.links.links, *baseline);
  return pairs_to_repeat(link_hosts(machines_of(agents), result), result.links.links, also);
}

}  // namespace

Task<bool> measure_links(asio::io_context& io, std::vector<launcher::AgentChannel*> agents, const CheckOptions& options,
                         const Baseline* baseline, Deadline deadline, Deadline latest, launcher::NetworkProbe& network,
                         CheckResult& result) {
  std::vector<int> order = measurable_hosts(agents, result);
  bool speeds_known = true;
  if (order.size() < 2) co_return speeds_known;
  const launcher::LinkTimes times = link_times(options.depth);
  const LinkSchedule schedule = link_schedule(options.depth, Clock::now(), deadline, latest);
  launcher::LinkCheck links(io, agents, network.most.choice, times, static_cast<std::uint64_t>(options.max_rate_bps));
  co_await links.listen(schedule.end);
  // With a limit all networks would look alike.
  if (options.max_rate_bps <= 0) {
    std::vector<int> gone = gone_hosts(agents, result);
    speeds_known =
        co_await launcher::choose_by_speed(network, links, std::move(gone), times.bandwidth_min, schedule.speeds);
    store_network(network, result);
  }
  links.use(network.most.choice);
  result.links.links = co_await links.first_pass(schedule.first_pass);
  log_step("links: all pairs", schedule.end);
  result.links.ring = co_await links.ring(std::move(order), schedule.ring);
  log_step("links: ring", schedule.end);
  auto again = second_pass_pairs(agents, baseline, result);
  const std::size_t n_again = again.size();
  result.links.second_pass = co_await links.measure_again(std::move(again), schedule.second_pass);
  log_step(
      "links: " + std::to_string(result.links.second_pass.size()) + " of " + std::to_string(n_again) + " pairs again",
      schedule.second_pass);
  for (const auto& note : links.notes()) result.notes.push_back(note);
  co_return speeds_known;
}

}  // namespace drun::check
