#include "runtime/src/fabric.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "base/text.h"
#include "runtime/src/backend/hierarchical.h"
#include "runtime/src/backend/shm/shm_backend.h"
#include "runtime/src/backend/tcp/tcp_backend.h"

namespace drun::runtime {
namespace {

constexpr const char* kReady = "ready ";

// A number for each host.
std::vector<int> hosts_of(const World& world) {
  const auto& welcome = world.client->welcome();
  std::vector<int> result(static_cast<std::size_t>(world.size()));
  if (welcome.local_size == welcome.size) return result;
  std::map<std::string, int> numbers;
  for (int rank = 0; rank < world.size(); ++rank) {
    result[static_cast<std::size_t>(rank)] =
        numbers.emplace(world.host_of(rank), static_cast<int>(numbers.size())).first->second;
  }
  return result;
}

}  // namespace

Outcome<std::shared_ptr<Fabric>> Fabric::create(World world) {
  std::shared_ptr<Fabric> result(new Fabric(std::move(world)));
  result->host_of_rank_ = hosts_of(result->world_);
  if (result->world_.size() == 1) return result;
  auto links = Links::connect(result->world_);
  if (!links) return tl::unexpected<Failure>(links.error());
  result->links_ = std::move(*links);
  if (auto shared = result->share_memory(); !shared) return tl::unexpected<Failure>(shared.error());
  return result;
}

Group Fabric::local() const {
  const int own = host_of_rank_[static_cast<std::size_t>(world_.rank())];
  Group group = Group::all(world_).part([&](int rank) { return host_of_rank_[static_cast<std::size_t>(rank)] == own; });
  group.comm = kCommLocal;
  return group;
}

Group Fabric::cross() const {
  std::map<int, int> n_seen;  // by host
  std::vector<int> place;     // of each rank on its host
  for (const int host : host_of_rank_) place.push_back(n_seen[host]++);
  const int own = place[static_cast<std::size_t>(world_.rank())];
  Group group = Group::all(world_).part([&](int rank) { return place[static_cast<std::size_t>(rank)] == own; });
  group.comm = kCommCross;
  return group;
}

Failure Fabric::setup_failure(const Error& error, const std::string& during) const {
  if (auto alive = check_alive(world_, during); !alive) return alive.error();
  return from_error(error, during);
}

// All ranks have met since drun_init began: nobody uses the memory as an earlier drun_init left it. One that has none
// (in a container with DRUN_KEY) makes all of them do without. The first rank of each host sets the memory up.
Status Fabric::share_memory() {
  const int rank = world_.rank();
  const int host = host_of_rank_[static_cast<std::size_t>(rank)];
  const auto first = std::find(host_of_rank_.begin(), host_of_rank_.end(), host);
  const int first_rank = static_cast<int>(first - host_of_rank_.begin());
  const bool alone = std::count(host_of_rank_.begin(), host_of_rank_.end(), host) == 1;

  Operation agreement;
  agreement.kind = OpKind::kAllreduce;
  agreement.op = DRUN_MIN;
  agreement.count = 1;
  agreement.timeout = world_.timeouts.init;
  agreement.deadline = Clock::now() + agreement.timeout;
  agreement.name = "drun_init";
  char has_memory = alone || world_.memory ? 1 : 0;
  auto network = make_tcp_backend(world_, links_, Group::all(world_));
  if (auto all = network->allreduce(agreement, {&has_memory, 1, DRUN_INT8}); !all) return all;
  uses_memory_ = has_memory != 0;
  if (!uses_memory_ || alone) return {};

  auto& client = *world_.client;
  const std::string key = world_.own_key("memory/" + std::to_string(first_rank));
  const auto failed = [&](Error error) {
    return tl::unexpected<Failure>(
        setup_failure(std::move(error).with_subject("host " + world_.host_of(rank)), "drun_init"));
  };
  Result<std::shared_ptr<Arena>> arena = fail(Errc::kInternal, "not asked");
  if (rank == first_rank) {
    arena = Arena::create(std::move(world_.memory));
    const std::string word = arena ? kReady : arena.error().message();
    if (auto set = client.set(key, word); !set) return failed(set.error());
  } else {
    const auto word = client.get(key, world_.timeouts.init);
    if (!word) return failed(word.error());
    arena = *word == kReady ? Arena::join(std::move(world_.memory)) : fail(Errc::kIo, *word);
  }
  if (!arena) return failed(arena.error());
  memory_ = std::move(*arena);
  return {};
}

Outcome<std::unique_ptr<Backend>> Fabric::make_backend(const Group& group) {
  if (group.size() == 1) return nullptr;
  std::vector<int> host_of_member;
  for (const int rank : group.ranks) host_of_member.push_back(host_of_rank_[static_cast<std::size_t>(rank)]);
  const auto on_our_host = [&](int member) {
    return host_of_member[static_cast<std::size_t>(member)] == host_of_member[static_cast<std::size_t>(group.own)];
  };
  const auto over_network = [this](const Group& members) { return make_tcp_backend(world_, links_, members); };
  std::map<int, int> n_on_host;
  for (const int host : host_of_member) ++n_on_host[host];
  const bool one_each = n_on_host.size() == static_cast<std::size_t>(group.size());
  if (!uses_memory_ || one_each) return over_network(group);

  const Group here = group.part(on_our_host);
  std::unique_ptr<ShmBackend> local;
  if (here.size() > 1) {
    auto made = make_local_backend(here);
    if (!made) return tl::unexpected<Failure>(made.error());
    local = std::move(*made);
  }
  if (n_on_host.size() == 1) return local;
  return make_hierarchical_backend(group, std::move(host_of_member), std::move(local), over_network);
}

// The first of the members takes a region; where it is, or why there is none, is everybody's result.
Outcome<std::unique_ptr<ShmBackend>> Fabric::make_local_backend(const Group& local) {
  auto& client = *world_.client;
  const std::string key =
      world_.own_key("region/" + std::to_string(local.comm) + "/" + std::to_string(local.world_rank(0)));
  const std::string during = local.comm == kCommWorld ? "drun_init" : "drun_comm_split";
  const auto failed = [&](Error error) {
    return tl::unexpected<Failure>(
        setup_failure(std::move(error).with_subject("host " + world_.host_of(world_.rank())), during));
  };
  Result<std::shared_ptr<Segment>> segment = fail(Errc::kInternal, "not asked");
  if (local.own == 0) {
    segment = Segment::create(memory_, local.size());
    const std::string word = segment ? kReady + std::to_string((*segment)->offset()) : segment.error().message();
    if (auto set = client.set(key, word); !set) return failed(set.error());
  } else {
    const auto word = client.get(key, local.comm == kCommWorld ? world_.timeouts.init : world_.timeouts.op);
    if (!word) return failed(word.error());
    const auto offset =
        word->rfind(kReady, 0) == 0 ? parse_number(word->substr(std::string(kReady).size())) : std::nullopt;
    segment = offset ? Segment::map(memory_, static_cast<std::size_t>(*offset), local.size()) : fail(Errc::kIo, *word);
  }
  if (!segment) return failed(segment.error());
  return make_shm_backend(world_, local, std::move(*segment), make_tcp_backend(world_, links_, local));
}

void Fabric::remove(Backend* backend) {
  backends_.erase(std::remove(backends_.begin(), backends_.end(), backend), backends_.end());
}

void Fabric::break_all(const Failure& failure) {
  if (broken_) return;
  broken_ = failure;
  for (Backend* backend : backends_) backend->close();
  if (links_) links_->close();
}

}  // namespace drun::runtime
