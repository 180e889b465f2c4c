#include "runtime/src/communicator.h"

#include <algorithm>
#include <cstring>

#include "runtime/src/arguments.h"
#include "runtime/src/backend/shm/shm_backend.h"
#include "runtime/src/backend/tcp/tcp_backend.h"
#include "runtime/src/dtype.h"

namespace drun::runtime {
Outcome<std::unique_ptr<Communicator>> Communicator::create(World world) {
  std::unique_ptr<Communicator> result(new Communicator(std::move(world)));
  if (result->world_.size() > 1) {
    auto backend = make_tcp_backend(result->world_);
    if (!backend) return tl::unexpected<Failure>(backend.error());
    result->backend_ = std::move(*backend);
    if (result->world_.client->welcome().local_size == result->world_.size()) {
      backend = make_shm_backend(result->world_, std::move(result->backend_));
      if (!backend) return tl::unexpected<Failure>(backend.error());
      result->backend_ = std::move(*backend);
    }
  }
  return result;
}

Status Communicator::fail(Failure failure) {
  if (!broken_) {
    publish_failure(world_, failure);
    if (backend_) backend_->close();
    broken_ = failure;
  }
  return tl::unexpected<Failure>(std::move(failure));
}

void Communicator::leave() {
  if (backend_ && !broken_) publish_leaving(world_);
}

Outcome<Operation> Communicator::begin(OpKind kind, std::size_t count, drun_dtype dtype, const CallOptions& options) {
  if (broken_) {
    Failure again = *broken_;
    again.text = "an earlier collective failed: " + again.text;
    return tl::unexpected<Failure>(std::move(again));
  }
  Operation operation;
  operation.kind = kind;
  operation.count = count;
  operation.dtype = dtype;
  if (kind != OpKind::kSend && kind != OpKind::kRecv) operation.seq = ++seq_;
  operation.timeout = options.timeout.count() > 0 ? options.timeout : world_.timeouts.op;
  operation.deadline = Clock::now() + operation.timeout;
  operation.prescale = options.prescale;
  operation.postscale = options.postscale;
  operation.name = options.name;
  return operation;
}

Status Communicator::finish(Status status) {
  if (!status) broken_ = status.error();
  return status;
}

Status Communicator::broadcast(void* data, std::size_t count, drun_dtype dtype, int root, const CallOptions& options) {
  const Arguments check("drun_broadcast");
  if (auto ok = check.elements(count, dtype); !ok) return ok;
  if (auto ok = check.root(root, world_.size()); !ok) return ok;
  if (auto ok = check.no_scales(options); !ok) return ok;
  if (auto ok = check.buffer("data", data, count); !ok) return ok;
  auto operation = begin(OpKind::kBroadcast, count, dtype, options);
  if (!operation) return tl::unexpected<Failure>(operation.error());
  operation->root = root;
  return backend_ ? finish(backend_->broadcast(*operation, data)) : Status{};
}

Status Communicator::allgather(const void* send, void* recv, std::size_t count, drun_dtype dtype,
                               const CallOptions& options) {
  const Arguments check("drun_allgather");
  const auto size = static_cast<std::size_t>(world_.size()), rank = static_cast<std::size_t>(world_.rank());
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
  if (send != own && n_bytes > 0) std::memcpy(own, send, n_bytes);
  if (!backend_) return {};
  std::vector<Block> blocks;
  for (std::size_t i = 0; i < size; ++i) blocks.push_back({i * n_bytes, n_bytes});
  return finish(backend_->allgather(*operation, recv, blocks));
}

Status Communicator::allgatherv(const void* send, std::size_t send_count, void* recv, const std::size_t* recv_counts,
                                const std::size_t* recv_offsets, drun_dtype dtype, const CallOptions& options) {
  const Arguments check("drun_allgatherv");
  const int size = world_.size(), rank = world_.rank();
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
  if (send != place && own.n_bytes > 0) std::memcpy(place, send, own.n_bytes);
  return backend_ ? finish(backend_->allgather(*operation, recv, *blocks)) : Status{};
}

Status Communicator::barrier(const CallOptions& options) {
  if (auto ok = Arguments("drun_barrier").no_scales(options); !ok) return ok;
  auto operation = begin(OpKind::kBarrier, 0, DRUN_INT8, options);
  if (!operation) return tl::unexpected<Failure>(operation.error());
  return backend_ ? finish(backend_->barrier(*operation)) : Status{};
}

}  // namespace drun::runtime
