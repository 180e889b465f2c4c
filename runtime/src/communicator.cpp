#include "runtime/src/communicator.h"

#include <algorithm>
#include <utility>

#include "runtime/src/arguments.h"
#include "runtime/src/backend/recording_backend.h"
#include "runtime/src/copy.h"
#include "runtime/src/dtype.h"
#include "runtime/src/gpu/host_copies.h"
#include "runtime/src/gpu/nccl_comm.h"

namespace drun::runtime {

Outcome<std::unique_ptr<Communicator>> Communicator::create(JobContext job_context) {
  auto resources = JobResources::create(std::move(job_context));
  if (!resources) return tl::unexpected<Failure>(resources.error());
  Group all = Group::all((*resources)->job_context());
  const auto setup = JobResources::setup_call(all.comm, (*resources)->job_context().timeouts.init, "drun_init");
  return create(std::move(*resources), std::move(all), setup);
}

Outcome<std::unique_ptr<Communicator>> Communicator::create(std::shared_ptr<JobResources> resources, Group group,
                                                            const Operation& setup) {
  std::unique_ptr<Communicator> result(new Communicator(std::move(resources), std::move(group)));
  auto backend = result->resources_->make_backend(result->group_, setup);
  if (!backend) return tl::unexpected<Failure>(backend.error());
  result->backend_ = make_recording_backend(std::move(*backend), result->job_context().recorder, result->group_);
  if (result->backend_) result->resources_->add(result->backend_.get());
  return result;
}

Communicator::Communicator(std::shared_ptr<JobResources> resources, Group group)
    : resources_(std::move(resources)), group_(std::move(group)) {}

Status Communicator::enqueued(const Status& status) {
  if (status) return status;
  return status.error().rank < 0 && status.error().status == DRUN_ERROR_SYSTEM ? fail_in(status) : fail(status.error());
}

bool Communicator::is_idle() const { return !nccl_ || nccl_->is_idle(); }

Communicator::~Communicator() {
  if (nccl_ != nullptr) nccl_->release();
  if (backend_) resources_->remove(backend_.get());
}

// Gathers the color and key of every member, and the first communicator number that all members have free.
Outcome<std::unique_ptr<Communicator>> Communicator::split(int color, int key, const CallOptions& options) {
  struct Wish {
    std::int64_t color, key, comm;
  };
  std::vector<Wish> wishes(static_cast<std::size_t>(size()));
  const Wish ours{color, key, resources_->next_comm};
  auto gathered = allgather(&ours, wishes.data(), sizeof(Wish) / sizeof(std::int64_t), DRUN_INT64, options);
  if (!gathered) return tl::unexpected<Failure>(gathered.error());
  std::int64_t comm = 0;
  for (const Wish& wish : wishes) comm = std::max(comm, wish.comm);
  resources_->next_comm = static_cast<std::uint32_t>(comm + 1);
  if (color < 0) return nullptr;

  std::vector<int> members;
  for (int member = 0; member < size(); ++member) {
    if (wishes[static_cast<std::size_t>(member)].color == color) members.push_back(member);
  }
  std::stable_sort(members.begin(), members.end(), [&](int a, int b) {
    return wishes[static_cast<std::size_t>(a)].key < wishes[static_cast<std::size_t>(b)].key;
  });
  Group group;
  group.comm = static_cast<std::uint32_t>(comm);
  group.ranks = group_.world_ranks(members);
  group.own = group.member_of(job_context().rank());
  return among(std::move(group), options.timeout, "drun_comm_split");
}

Outcome<std::unique_ptr<Communicator>> Communicator::among(Group group, std::chrono::milliseconds timeout,
                                                           const char* function) {
  if (auto usable = check_usable(); !usable) return tl::unexpected<Failure>(usable.error());
  const auto setup =
      JobResources::setup_call(group.comm, timeout.count() > 0 ? timeout : job_context().timeouts.op, function);
  auto result = create(resources_, std::move(group), setup);
  if (!result) {  // the other members wait for it
    auto failed = fail(result.error());
    return tl::unexpected<Failure>(failed.error());
  }
  return result;
}

Status Communicator::fail(Failure failure) {
  if (!resources_->broken()) {
    publish_failure(job_context(), failure);
    resources_->break_all(failure);
  }
  return tl::unexpected<Failure>(std::move(failure));
}

void Communicator::leave() {
  if (job_context().size() > 1 && !resources_->broken()) publish_leaving(job_context());
}

tl::unexpected<Failure> Communicator::earlier_failure() const {
  resources_->tell();
  Failure again = *resources_->broken();
  again.text = "an earlier collective failed: " + again.text;
  return tl::unexpected<Failure>(std::move(again));
}

Outcome<Operation> Communicator::begin(OpKind kind, std::size_t count, drun_dtype dtype, const CallOptions& options,
                                       bool asks_for_time) {
  if (auto usable = check_usable(); !usable) return tl::unexpected<Failure>(usable.error());
  Operation operation = to_come(kind, count, dtype, options, asks_for_time);
  if (kind != OpKind::kSend && kind != OpKind::kRecv) seq_ = operation.seq;
  return operation;
}

Operation Communicator::to_come(OpKind kind, std::size_t count, drun_dtype dtype, const CallOptions& options,
                                bool asks_for_time) const {
  Operation operation;
  if (!asks_for_time) operation.clock.began();
  operation.comm = group_.comm;
  operation.kind = kind;
  operation.count = count;
  operation.dtype = dtype;
  if (kind != OpKind::kSend && kind != OpKind::kRecv) {
    operation.seq = seq_ + 1;
    operation.names = options.names;
  }
  operation.timeout = timeout_of(options);
  if (options.made != Clock::time_point{}) operation.queued = operation.clock.began() - options.made;
  operation.prescale = options.prescale;
  operation.postscale = options.postscale;
  if (!options.name.empty()) operation.name = options.name;
  return operation;
}

Status Communicator::fail_in(const Status& why) {
  Failure failure = why.error();
  failure.rank = job_context().rank();
  failure.host = job_context().host_of(failure.rank);
  return fail(std::move(failure));
}

// The call has the turn, so no other thread polls the job during the wait.
gpu::HostCopies::CheckJob Communicator::check_job() {
  return [this, asked = Clock::now()](const Operation& operation) mutable -> Status {
    resources_->poll();
    if (auto usable = check_usable(); !usable) return usable;
    return check_others(job_context(), name_of(operation), asked);
  };
}

Status Communicator::fail_in_copies(const gpu::HostCopies& copies, const Status& why) {
  return copies.is_interrupted() ? finish(why) : fail_in(why);
}

Status Communicator::stage_buffers(gpu::HostCopies& copies, const Buffers& buffers) {
  if (buffers.written != nullptr) {
    if (auto ok = copies.writes(*buffers.written, buffers.n_written, buffers.keeps); !ok)
      return fail_in_copies(copies, ok);
  }
  if (buffers.read != nullptr) {
    if (auto ok = copies.reads(*buffers.read, buffers.n_read); !ok) return fail_in_copies(copies, ok);
  }
  return {};
}

Status Communicator::end(gpu::HostCopies& copies, Status done) {
  if (!done) return done;
  const Status copied = copies.finish();
  return copied ? copied : fail_in_copies(copies, copied);
}

Status Communicator::finish(Status status) {
  if (!status) resources_->break_all(status.error());
  return status;
}

Status Communicator::broadcast(void* data, std::size_t count, drun_dtype dtype, int root, const CallOptions& options) {
  const Arguments check("drun_broadcast");
  if (auto ok = check.elements(count, dtype); !ok) return ok;
  if (auto ok = check.root(root, this->size()); !ok) return ok;
  if (auto ok = check.no_scales(options); !ok) return ok;
  if (auto ok = check.buffer("data", data, count); !ok) return ok;
  auto operation = begin(OpKind::kBroadcast, count, dtype, options);
  if (!operation) return tl::unexpected<Failure>(operation.error());
  operation->root = root;
  const std::size_t n_bytes = count * size_of(dtype);
  const void* given = data;
  const Buffers buffers = root == rank() ? Buffers{&given, n_bytes} : Buffers{nullptr, 0, &data, n_bytes};
  return carry_out(
      *operation, options, buffers,
      [&](gpu::NcclComm& nccl, const gpu::UserStream& stream) { return nccl.broadcast(*operation, stream, data); },
      [&] {
        if (!backend_) return Status{};
        return finish(backend_->broadcast(*operation, root == rank() ? const_cast<void*>(given) : data, n_bytes));
      });
}

Status Communicator::allgather(const void* send, void* recv, std::size_t count, drun_dtype dtype,
                               const CallOptions& options) {
  const Arguments check("drun_allgather");
  const auto size = static_cast<std::size_t>(this->size()), rank = static_cast<std::size_t>(this->rank());
  if (auto ok = check.elements(count, dtype, size); !ok) return ok;
  if (auto ok = check.no_scales(options); !ok) return ok;
  if (auto ok = check.buffer("send", send, count); !ok) return ok;
  if (auto ok = check.buffer("recv", recv, count); !ok) return ok;
  const std::size_t n_bytes = count * size_of(dtype);
  char* own = static_cast<char*>(recv) + (count > 0 ? rank * n_bytes : 0);
  if (send != own && overlap(send, n_bytes, recv, size * n_bytes)) {
    return check.wrong("send lies in recv, but not at this rank's place");
  }
  auto operation = begin(OpKind::kAllgather, count, dtype, options);
  if (!operation) return tl::unexpected<Failure>(operation.error());
  return carry_out(
      *operation, options, {&send, n_bytes, &recv, size * n_bytes},
      [&](gpu::NcclComm& nccl, const gpu::UserStream& stream) {
        return nccl.allgather(*operation, stream, send, recv);
      },
      [&] {
        own = static_cast<char*>(recv) + (count > 0 ? rank * n_bytes : 0);
        if (send != own && n_bytes > 0) copy_bytes(own, send, n_bytes);
        if (!backend_) return Status{};
        return finish(backend_->allgather(*operation, recv, equal_blocks(size, n_bytes)));
      });
}

Status Communicator::allgatherv(const void* send, std::size_t send_count, void* recv, const std::size_t* recv_counts,
                                const std::size_t* recv_offsets, drun_dtype dtype, const CallOptions& options) {
  const Arguments check("drun_allgatherv");
  const int size = this->size(), rank = this->rank();
  auto blocks = check.blocks("recv", recv_counts, recv_offsets, size, dtype, true);
  if (!blocks) return tl::unexpected<Failure>(blocks.error());
  if (auto ok = check.no_scales(options); !ok) return ok;
  if (send_count != recv_counts[rank]) {
    return check.wrong("send_count is " + std::to_string(send_count) + ", but recv_counts of this rank, " +
                       std::to_string(rank) + ", is " + std::to_string(recv_counts[rank]));
  }
  std::size_t count = 0;               // can't overflow: the blocks are disjoint
  std::uint32_t digest = 2166136261u;  // FNV-1a
  for (int i = 0; i < size; ++i) {
    count += recv_counts[i];
    for (int shift = 0; shift < 64; shift += 8) {
      digest = (digest ^ static_cast<std::uint32_t>((std::uint64_t{recv_counts[i]} >> shift) & 0xff)) * 16777619u;
    }
  }
  const Block own = (*blocks)[static_cast<std::size_t>(rank)];
  if (auto ok = check.buffer("send", send, own.n_bytes); !ok) return ok;
  if (auto ok = check.buffer("recv", recv, count); !ok) return ok;
  char* place = static_cast<char*>(recv) + (own.n_bytes > 0 ? own.offset : 0);
  for (const Block& block : *blocks) {
    if (send != place && block.n_bytes > 0 &&
        overlap(send, own.n_bytes, static_cast<char*>(recv) + block.offset, block.n_bytes)) {
      return check.wrong("send lies in recv, but not at this rank's place");
    }
  }
  auto operation = begin(OpKind::kAllgatherv, count, dtype, options);
  if (!operation) return tl::unexpected<Failure>(operation.error());
  operation->counts = digest;
  return carry_out(
      *operation, options, {&send, own.n_bytes, &recv, end_of(*blocks), true},
      [&](gpu::NcclComm& nccl, const gpu::UserStream& stream) {
        return nccl.allgatherv(*operation, stream, send, recv, *blocks);
      },
      [&] {
        place = static_cast<char*>(recv) + (own.n_bytes > 0 ? own.offset : 0);
        if (send != place && own.n_bytes > 0) copy_bytes(place, send, own.n_bytes);
        return backend_ ? finish(backend_->allgather(*operation, recv, *blocks)) : Status{};
      });
}

Status Communicator::barrier(const CallOptions& options) {
  if (auto ok = Arguments("drun_barrier").no_scales(options); !ok) return ok;
  auto operation = begin(OpKind::kBarrier, 0, DRUN_INT8, options, backend_ && backend_->asks_for_time());
  if (!operation) return tl::unexpected<Failure>(operation.error());
  return backend_ ? finish(backend_->barrier(*operation)) : Status{};
}

}  // namespace drun::runtime
