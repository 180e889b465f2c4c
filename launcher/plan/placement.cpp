#include "launcher/plan/placement.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>

#include "base/error_id.h"
#include "base/text.h"
#include "launcher/plan/host_item.h"
#include "launcher/plan/hostlist.h"

namespace drun::launcher {
namespace {

constexpr std::int64_t kMaxWorkers = 1 << 20;

// Slots may exceed the maximum after the slots of a host that is named several times were added.
int usable_slots(const Host& host) {
  const int slots = std::max(host.slots, 0);
  return host.max_slots > 0 ? std::min(slots, host.max_slots) : slots;
}

// The hint of what to type for `np` workers: the number that fits, or the same hosts with the missing slots spread over
// them.
std::string more_slots_hint(const std::vector<Host>& hosts, std::int64_t total, int np) {
  constexpr std::size_t kMaxHosts = 8;
  const std::string fewer = total > 0 ? "-np " + std::to_string(total) + ", or " : "";
  const bool from_list =
      starts_with(hosts.front().where, "-H") || hosts.front().where.empty() || !hosts.front().job.empty();
  if (!from_list) return fewer + "more slots= at " + hosts.front().where;
  const auto n = static_cast<std::int64_t>(hosts.size());
  const std::int64_t missing = np - total;
  if (hosts.size() > kMaxHosts) {
    return fewer + "at least " + std::to_string((np + n - 1) / n) + " slots on every host";
  }
  std::vector<std::string> items;
  for (std::int64_t i = 0; i < n; ++i) {
    const Host& host = hosts[static_cast<std::size_t>(i)];
    items.push_back(to_item(host, usable_slots(host) + missing / n + (i < missing % n ? 1 : 0)));
  }
  return fewer + "-H " + join(items, ",");
}

// Catches a host that was named twice: once with GPUs and once without, or twice with the same one.
Result<void> check_all_gpus(const Host& host) {
  const int n_slots = usable_slots(host);
  const auto ok = check_gpus(n_slots, host.gpus, 0);
  if (ok) return {};
  const bool is_short = static_cast<int>(host.gpus.size()) < n_slots;
  return fail(Error(Errc::kUsage, host.name, ok.error().cause)
                  .with_hint(is_short ? "gpus= for every slot of the host, or for none" : ok.error().hint)
                  .with_id(error_id::kSlots));
}

}  // namespace

Result<Placement> place(const std::vector<Host>& hosts, int np) {
  if (np < 0) {
    return fail(Error(Errc::kUsage, "-np " + std::to_string(np), "the number of workers must be at least 1"));
  }
  if (hosts.empty())
    return fail(Error(Errc::kUsage, "no host to run on").with_hint("-H localhost:2").with_id(error_id::kSlots));
  std::int64_t total = 0;
  for (const auto& host : hosts) total += usable_slots(host);
  if (np > total) {
    const std::string& job = hosts.front().job;
    return fail(Error(Errc::kUsage, "-np " + std::to_string(np),
                      "only " + plural(static_cast<std::size_t>(total), "slot") + " on " +
                          plural(hosts.size(), "host") + (job.empty() ? "" : " of " + job))
                    .with_hint(more_slots_hint(hosts, total, np))
                    .with_id(error_id::kSlots));
  }
  for (const auto& host : hosts) {
    if (auto ok = check_all_gpus(host); !ok) return fail(std::move(ok.error()));
  }
  if (total == 0)
    return fail(Error(Errc::kUsage, "no host has a slot").with_hint("-H localhost:2").with_id(error_id::kSlots));
  const std::int64_t size = np == 0 ? total : np;
  if (size > kMaxWorkers) {
    return fail(Errc::kUsage, np == 0 ? "slots" : "-np " + std::to_string(np),
                std::to_string(size) + " workers are more than drun can start (" + std::to_string(kMaxWorkers) + ")");
  }

  Placement out;
  out.size = static_cast<int>(size);
  out.ranks.reserve(static_cast<std::size_t>(size));
  std::vector<int> hosts_with;  // by local rank
  for (std::size_t i = 0; i < hosts.size() && static_cast<int>(out.ranks.size()) < out.size; ++i) {
    const int local_size = std::min(usable_slots(hosts[i]), out.size - static_cast<int>(out.ranks.size()));
    if (local_size == 0) continue;
    if (static_cast<int>(hosts_with.size()) < local_size) hosts_with.resize(static_cast<std::size_t>(local_size), 0);
    for (int local_rank = 0; local_rank < local_size; ++local_rank) {
      RankPlace r;
      r.rank = static_cast<int>(out.ranks.size());
      r.host = static_cast<int>(out.host_indices.size());
      r.local_rank = local_rank;
      r.local_size = local_size;
      if (static_cast<std::size_t>(local_rank) < hosts[i].gpus.size()) {
        r.gpu = hosts[i].gpus[static_cast<std::size_t>(local_rank)];
      }
      r.cross_rank = hosts_with[static_cast<std::size_t>(local_rank)]++;
      out.ranks.push_back(r);
    }
    out.host_indices.push_back(static_cast<int>(i));
    out.local_sizes.push_back(local_size);
  }
  for (RankPlace& r : out.ranks) r.cross_size = hosts_with[static_cast<std::size_t>(r.local_rank)];
  return out;
}

Placement led_by(const Placement& placement, int host) {
  Placement out = placement;
  const auto index_of = [host](int before) { return before == host ? 0 : before < host ? before + 1 : before; };
  for (std::size_t i = 0; i < placement.host_indices.size(); ++i) {
    const auto to = static_cast<std::size_t>(index_of(static_cast<int>(i)));
    out.host_indices[to] = placement.host_indices[i];
    out.local_sizes[to] = placement.local_sizes[i];
  }
  for (RankPlace& r : out.ranks) r.host = index_of(r.host);
  std::stable_sort(out.ranks.begin(), out.ranks.end(),
                   [](const RankPlace& a, const RankPlace& b) { return a.host < b.host; });
  std::map<int, int> n_with;  // by local rank
  for (std::size_t i = 0; i < out.ranks.size(); ++i) {
    out.ranks[i].rank = static_cast<int>(i);
    out.ranks[i].cross_rank = n_with[out.ranks[i].local_rank]++;
  }
  return out;
}

std::vector<Host> with_slots_for(std::vector<Host> hosts, int np) {
  std::int64_t missing = np;
  std::vector<int> slots;
  for (const auto& host : hosts) {
    slots.push_back(usable_slots(host));
    missing -= slots.back();
  }
  for (bool any = true; missing > 0 && any;) {
    any = false;
    for (std::size_t i = 0; i < hosts.size() && missing > 0; ++i) {
      const int room = hosts[i].max_slots > 0 ? hosts[i].max_slots - hosts[i].slots : slots[i];
      const int more = static_cast<int>(std::min<std::int64_t>({missing, slots[i], room}));
      if (more <= 0) continue;
      hosts[i].slots += more;
      missing -= more;
      any = true;
    }
  }
  return hosts;
}

}  // namespace drun::launcher
