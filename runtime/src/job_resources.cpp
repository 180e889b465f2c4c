#include "runtime/src/job_resources.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>

#include "base/text.h"
#include "runtime/src/backend/hierarchical.h"
#include "runtime/src/backend/shm/shm_backend.h"
#include "runtime/src/backend/tcp/tcp_backend.h"

namespace drun::runtime {
namespace {

constexpr const char* kReady = "ready ";
constexpr std::size_t kLeaversAtOnce = 8;
// Poll interval and time limit at the end of a job.
constexpr std::chrono::milliseconds kPollAtEnd{2}, kEndTime{5000};
// Time that a call may wait for a peer that has left.
constexpr std::chrono::milliseconds kLeaverTime{3000};

}  // namespace

JobResources::JobResources(JobContext job_context)
    : next_comm(job_context.first_comm), job_context_(std::move(job_context)) {}
JobResources::~JobResources() = default;

Outcome<std::shared_ptr<JobResources>> JobResources::create(JobContext job_context) {
  std::shared_ptr<JobResources> result(new JobResources(std::move(job_context)));
  result->host_of_rank_ = result->job_context_.client->welcome().host_index_of_rank;
  result->gpu_.assign(static_cast<std::size_t>(result->job_context_.size()), result->job_context_.gpu);
  if (result->job_context_.size() == 1) return result;
  auto links = Connections::connect(result->job_context_);
  if (!links) return tl::unexpected<Failure>(links.error());
  result->connections_ = std::move(*links);
  if (auto shared = result->share_memory(); !shared) return tl::unexpected<Failure>(shared.error());
  return result;
}

Group JobResources::local() const {
  const int own = host_of_rank_[static_cast<std::size_t>(job_context_.rank())];
  Group group =
      Group::all(job_context_).part([&](int rank) { return host_of_rank_[static_cast<std::size_t>(rank)] == own; });
  group.comm = kCommLocal;
  group.ranks_of_comm.clear();  // the local communicator is not a part of another
  return group;
}

Group JobResources::cross() const {
  std::map<int, int> n_seen;  // by host
  std::vector<int> place;     // of each rank on its host
  for (const int host : host_of_rank_) place.push_back(n_seen[host]++);
  const int own = place[static_cast<std::size_t>(job_context_.rank())];
  Group group = Group::all(job_context_).part([&](int rank) { return place[static_cast<std::size_t>(rank)] == own; });
  group.comm = kCommCross;
  group.ranks_of_comm.clear();
  return group;
}

Operation JobResources::setup_call(std::uint32_t comm, std::chrono::milliseconds timeout, std::string name) {
  Operation setup;
  setup.kind = OpKind::kAllreduce;
  setup.op = DRUN_MIN;
  setup.comm = comm;
  setup.count = 1;
  setup.timeout = timeout;
  setup.clock.begin_at(Clock::now());
  setup.name = std::move(name);
  return setup;
}

// All ranks have met since drun_init began, so no rank uses the memory as an earlier drun_init left it. If one rank has
// none (in a container with DRUN_KEY), no rank uses it. The first rank of each host sets the memory up.
Status JobResources::share_memory() {
  const int rank = job_context_.rank();
  const int host = host_of_rank_[static_cast<std::size_t>(rank)];
  const bool alone = std::count(host_of_rank_.begin(), host_of_rank_.end(), host) == 1;

  Operation setup = setup_call(kCommWorld, job_context_.timeouts.init, "drun_init");
  // One byte per rank: bit 0 is set if it has memory or needs none, the rest is its GPU presence.
  std::vector<char> said(static_cast<std::size_t>(job_context_.size()), 0);
  said[static_cast<std::size_t>(rank)] =
      static_cast<char>((alone || job_context_.memory ? 1 : 0) + 2 * static_cast<int>(job_context_.gpu));
  setup.op = DRUN_MAX;
  setup.count = said.size();
  auto network = make_tcp_backend(job_context_, connections_, Group::all(job_context_));
  if (auto all = network->allreduce(setup, {said.data(), said.size(), DRUN_INT8}); !all) return all;
  setup.op = DRUN_MIN;
  setup.count = 1;
  uses_memory_ = std::all_of(said.begin(), said.end(), [](char byte) { return (byte & 1) != 0; });
  for (std::size_t i = 0; i < said.size(); ++i) gpu_[i] = gpu::presence_of(said[i] >> 1);
  if (!uses_memory_ || alone) return {};

  const Group here = local();
  auto inside = make_tcp_backend(job_context_, connections_, here);
  Result<std::shared_ptr<Arena>> arena = fail(Errc::kInternal, "not asked");
  if (here.own == 0) arena = Arena::create(std::move(job_context_.memory));
  auto word = word_of_first(*inside, here, setup, arena ? kReady : arena.error().message());
  if (!word) return tl::unexpected<Failure>(word.error());
  if (here.own != 0) arena = *word == kReady ? Arena::join(std::move(job_context_.memory)) : fail(Errc::kIo, *word);
  if (!arena) return no_memory(arena.error(), setup);
  memory_ = std::move(*arena);
  return {};
}

// Broadcasts the first member's text, and returns it on all members.
Outcome<std::string> JobResources::word_of_first(Backend& network, const Group& group, const Operation& setup,
                                                 const std::string& own_word) {
  std::array<char, 256> word{};
  if (group.own == 0) own_word.copy(word.data(), word.size() - 1);
  Operation telling = setup;
  telling.kind = OpKind::kBroadcast;
  telling.op = DRUN_SUM;
  telling.count = word.size();
  if (auto told = network.broadcast(telling, word.data(), word.size()); !told) {
    return tl::unexpected<Failure>(told.error());
  }
  return std::string(word.data());
}

// Publishes the failure, so that ranks of other hosts learn the reason too.
tl::unexpected<Failure> JobResources::no_memory(Error error, const Operation& setup) {
  auto result =
      from_error(std::move(error).with_subject("host " + job_context_.host_of(job_context_.rank())), setup.name);
  result.rank = job_context_.rank();
  publish_failure(job_context_, result);
  return tl::unexpected<Failure>(std::move(result));
}

Outcome<std::unique_ptr<Backend>> JobResources::make_backend(const Group& group, const Operation& setup) {
  if (group.size() == 1) return nullptr;
  std::vector<int> host_of_member;
  for (const int rank : group.ranks) host_of_member.push_back(host_of_rank_[static_cast<std::size_t>(rank)]);
  const auto on_our_host = [&](int member) {
    return host_of_member[static_cast<std::size_t>(member)] == host_of_member[static_cast<std::size_t>(group.own)];
  };
  const auto over_network = [this](const Group& members) {
    return make_tcp_backend(job_context_, connections_, members);
  };
  std::map<int, int> n_on_host;
  for (const int host : host_of_member) ++n_on_host[host];
  const bool one_each = n_on_host.size() == static_cast<std::size_t>(group.size());
  if (!uses_memory_ || one_each) return over_network(group);

  const Group here = group.part(on_our_host);
  std::unique_ptr<ShmBackend> local;
  std::optional<Failure> failed;
  if (here.size() > 1) {
    auto made = make_local_backend(here, setup);
    if (made) {
      local = std::move(*made);
    } else {
      failed = made.error();
    }
  }
  if (n_on_host.size() > 1) {  // if one host fails, all fail
    char is_ready = failed ? 0 : 1;
    auto all = over_network(group)->allreduce(setup, {&is_ready, 1, DRUN_INT8});
    if (!failed && !all) failed = all.error();
    if (!failed && is_ready == 0) {
      failed = published_failure(job_context_, setup.name, std::chrono::seconds(1));
      if (!failed) failed = failure(DRUN_ERROR_SYSTEM, setup.name + ": a host has no shared memory").value();
    }
  }
  if (failed) return tl::unexpected<Failure>(std::move(*failed));
  if (n_on_host.size() == 1) return local;
  return make_hierarchical_backend(group, std::move(host_of_member), std::move(local), over_network);
}

// The first member allocates a segment and broadcasts its offset, or the reason why there is none.
Outcome<std::unique_ptr<ShmBackend>> JobResources::make_local_backend(const Group& local, const Operation& setup) {
  auto network = make_tcp_backend(job_context_, connections_, local);
  Result<std::shared_ptr<Segment>> segment = fail(Errc::kInternal, "not asked");
  std::string own_word;
  if (local.own == 0) {
    segment = Segment::create(memory_, local.size());
    own_word = segment ? kReady + std::to_string((*segment)->offset()) : segment.error().message();
  }
  auto word = word_of_first(*network, local, setup, own_word);
  if (!word) return tl::unexpected<Failure>(word.error());
  if (local.own != 0) {
    const bool is_ready = word->rfind(kReady, 0) == 0;
    const auto offset = is_ready ? parse_number(word->substr(std::string(kReady).size())) : std::nullopt;
    segment = offset ? Segment::map(memory_, static_cast<std::size_t>(*offset), local.size()) : fail(Errc::kIo, *word);
  }
  if (!segment) return no_memory(segment.error(), setup);
  return make_shm_backend(job_context_, local, std::move(*segment), std::move(network));
}

void JobResources::remove(Backend* backend) {
  backends_.erase(std::remove(backends_.begin(), backends_.end(), backend), backends_.end());
}

bool JobResources::has_parts() const {
  const std::size_t n_hosts = std::set<int>(host_of_rank_.begin(), host_of_rank_.end()).size();
  return n_hosts > 1 && n_hosts < host_of_rank_.size();
}

gpu::NcclComm* JobResources::keep(std::unique_ptr<gpu::NcclComm> comm) {
  nccl_.push_back(std::move(comm));
  return nccl_.back().get();
}

gpu::NcclComm* JobResources::nccl_of(std::uint32_t comm) const {
  const auto found = std::find_if(nccl_.begin(), nccl_.end(),
                                  [&](const auto& one) { return one->comm() == comm && !one->is_released(); });
  return found != nccl_.end() ? found->get() : nullptr;
}

Status JobResources::deregister(const void* memory, std::size_t n_bytes, const char* during) {
  std::string why_not;
  for (const auto& comm : nccl_) {
    if (auto why = comm->deregister(memory, n_bytes); !why.empty()) why_not = why;
  }
  if (why_not.empty()) return {};
  return failure(DRUN_ERROR_SYSTEM, std::string(during) + ": " + why_not, job_context_.rank(),
                 job_context_.host_of(job_context_.rank()));
}

// Also checks for failures while no call of ours is under way, because on a host NCCL's abort waits for all members.
void JobResources::poll() {
  if (broken_ || nccl_.empty()) return;
  const gpu::NcclComm* waiting = nullptr;
  for (const auto& comm : nccl_) {
    if (auto ok = comm->poll(); !ok) return break_later(ok.error());
    if (comm->is_released() && comm->is_idle()) comm->end(std::chrono::milliseconds(0));
    if (waiting == nullptr && !comm->is_idle()) waiting = comm.get();
  }
  nccl_.erase(std::remove_if(nccl_.begin(), nccl_.end(),
                             [](const auto& comm) { return comm->is_released() && comm->is_idle(); }),
              nccl_.end());
  const std::string during = waiting != nullptr ? waiting->pending_call() : "collectives on GPUs";
  const auto break_what_waits = [&](const Failure& why) { waiting != nullptr ? break_later(why) : break_all(why); };
  const auto asked_before = asked_;
  if (auto well = check_others(job_context_, during, asked_); !well) return break_what_waits(well.error());
  if (asked_ != asked_before && waiting != nullptr) poll_for_leavers(waiting->waiting(), during);
}

std::string JobResources::under_way() const {
  const auto busy = std::find_if(nccl_.begin(), nccl_.end(), [](const auto& comm) { return !comm->is_idle(); });
  return busy != nccl_.end() ? (*busy)->pending_call() : "";
}

// Checks a few peers at a time, because each check is a request to the rendezvous. A peer that has left may have done
// its part long ago, and our GPU may be the one that is behind: the failure is attributed to the peer only if the same
// call still waits after kLeaverTime.
void JobResources::poll_for_leavers(const gpu::NcclComm::Waiting& waiting, const std::string& during) {
  if (leaver_ && leaver_->call != waiting.number) leaver_.reset();
  for (std::size_t i = 0; !leaver_ && i < std::min(kLeaversAtOnce, waiting.peers.size()); ++i) {
    const int rank = waiting.peers[next_leaver_++ % waiting.peers.size()];
    if (has_left(job_context_, rank, std::chrono::milliseconds(1)))
      leaver_ = Leaver{rank, waiting.number, Clock::now()};
  }
  if (!leaver_ || Clock::now() - leaver_->seen < kLeaverTime) return;
  Failure failure{DRUN_ERROR_PEER,
                  during + ": " + job_context_.name_of(leaver_->rank) + " has left: it called drun_finalize",
                  leaver_->rank, job_context_.host_of(leaver_->rank)};
  publish_failure(job_context_, failure);
  break_later(failure);
}

Status JobResources::finish_gpu() {
  if (broken_ && !is_told_) return tl::unexpected<Failure>(*broken_);
  if (nccl_.empty() || broken_) return {};
  const auto all_idle = [this] {
    return std::all_of(nccl_.begin(), nccl_.end(), [](const auto& comm) { return comm->is_idle(); });
  };
  for (poll(); !broken_ && !all_idle(); poll()) std::this_thread::sleep_for(kPollAtEnd);
  if (broken_) return tl::unexpected<Failure>(*broken_);
  return {};
}

// NCCL communicators of a host end together. If a rank of the host does not leave in time, they are left behind and
// NCCL keeps its resources.
void JobResources::end_gpu() {
  const auto until = Clock::now() + kEndTime;
  const auto left = [&] {
    return std::max(std::chrono::duration_cast<std::chrono::milliseconds>(until - Clock::now()),
                    std::chrono::milliseconds(1));
  };
  std::set<int> mates;
  for (const auto& comm : nccl_) {
    for (const int mate : comm->host_mates()) mates.insert(mate);
  }
  const bool all_leave =
      std::all_of(mates.begin(), mates.end(), [&](int mate) { return has_left(job_context_, mate, left()); });
  for (const auto& comm : nccl_) {
    if (all_leave) {
      comm->end(left());
    } else {
      comm->leave_behind();
    }
  }
}

void JobResources::break_later(const Failure& failure) {
  break_all(failure);
  is_told_ = false;
}

void JobResources::break_all(const Failure& failure) {
  if (broken_) return;
  broken_ = failure;
  for (Backend* backend : backends_) backend->close();
  if (connections_) connections_->close();
  // Last, because abort() waits for other ranks, which must have noticed the failure by then.
  for (const auto& comm : nccl_) comm->abort(failure.text);
}

}  // namespace drun::runtime
