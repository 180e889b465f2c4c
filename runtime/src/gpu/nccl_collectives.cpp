// The collectives of NcclComm, as NCCL's functions, or as groups of its sends and receives where it has none.
#include <string>
#include <vector>

#include "runtime/src/dtype.h"
#include "runtime/src/gpu/gpu_adasum.h"
#include "runtime/src/gpu/nccl_comm.h"
#include "runtime/src/gpu/nccl_reduction.h"

namespace drun::runtime::gpu {
namespace {

// Runs NCCL's calls in `calls` as one group.
template <typename Calls>
NcclResult grouped(const Nccl& nccl, const Calls& calls) {
  NcclResult result = nccl.GroupStart();
  if (is_begun(result)) result = calls();
  const auto ended = nccl.GroupEnd();
  return is_begun(result) ? ended : result;
}

}  // namespace

Status NcclComm::with_reduction(const std::vector<const Operation*>& operations, const std::vector<UserStream>& streams,
                                FunctionRef<NcclResult(std::size_t, Elements, NcclRedOp, Stream)> enqueue) {
  return run(operations, streams, [&](Stream ours) {
    NcclReductions reductions(nccl_, comm_, group_.size());
    const auto all = [&] {
      NcclResult result = kNcclSuccess;
      for (std::size_t i = 0; i < operations.size() && is_begun(result); ++i) {
        const Operation& o = *operations[i];
        NcclRedOp op = kNcclSum;
        result = reductions.add(o, op);
        const std::size_t at_once = n_reduced_at_once(o, group_.size());
        if (is_begun(result)) result = enqueue(i, {0, at_once}, op, ours);
        if (is_begun(result) && at_once < o.count) result = enqueue(i, {at_once, o.count - at_once}, op, ours);
      }
      return result;
    };
    return operations.size() > 1 ? grouped(nccl_, all) : all();
  });
}

Status NcclComm::allreduce(const std::vector<Allreduce>& calls) {
  std::vector<const Operation*> operations;
  std::vector<UserStream> streams;
  for (const auto& call : calls) {
    operations.push_back(&call.operation);
    streams.push_back(call.stream);
  }
  return with_reduction(operations, streams, [&](std::size_t i, Elements part, NcclRedOp op, Stream ours) {
    const drun_dtype dtype = calls[i].operation.dtype;
    const std::size_t offset = part.first * size_of(dtype);
    return nccl_.AllReduce(at(calls[i].send, offset), at(calls[i].recv, offset), part.count, nccl_type_of(dtype), op,
                           comm_, ours);
  });
}

Status NcclComm::adasum(const Operation& operation, const UserStream& stream, const void* send, void* recv) {
  const auto all = [&](Stream ours) -> Status {
    const auto exchange = [&, ours](const void* given, int to, void* taken, int from) -> Status {
      const int dtype = nccl_type_of(operation.dtype);
      const auto both = [&] {
        NcclResult result = kNcclSuccess;
        if (given != nullptr) result = nccl_.Send(given, operation.count, dtype, to, comm_, ours);
        if (taken != nullptr && is_begun(result)) {
          result = nccl_.Recv(taken, operation.count, dtype, from, comm_, ours);
        }
        return result;
      };
      return call_nccl(operation, ours, [&](Stream) { return grouped(nccl_, both); });
    };
    return GpuAdasum(device_, watch_, group_, operation, ours, recv, exchange).run(send);
  };
  return run_steps({&operation}, {stream}, all, true);  // calls share scratch memory
}

Status NcclComm::reduce(const Operation& operation, const UserStream& stream, const void* send, void* recv) {
  return with_reduction({&operation}, {stream}, [&](std::size_t, Elements part, NcclRedOp op, Stream ours) {
    const std::size_t offset = part.first * size_of(operation.dtype);
    return nccl_.Reduce(at(send, offset), at(recv, offset), part.count, nccl_type_of(operation.dtype), op,
                        operation.root, comm_, ours);
  });
}

Status NcclComm::reduce_scatter(const Operation& operation, const UserStream& stream, const void* send, void* recv) {
  return with_reduction({&operation}, {stream}, [&](std::size_t, Elements part, NcclRedOp op, Stream ours) {
    const std::size_t offset = part.first * size_of(operation.dtype);
    return nccl_.ReduceScatter(at(send, offset), at(recv, offset), part.count, nccl_type_of(operation.dtype), op, comm_,
                               ours);
  });
}

Status NcclComm::broadcast(const Operation& operation, const UserStream& stream, void* data) {
  return run(operation, stream, [&](Stream ours) {
    return nccl_.Broadcast(data, data, operation.count, nccl_type_of(operation.dtype), operation.root, comm_, ours);
  });
}

Status NcclComm::allgather(const Operation& operation, const UserStream& stream, const void* send, void* recv) {
  return run(operation, stream, [&](Stream ours) {
    return nccl_.AllGather(send, recv, operation.count, nccl_type_of(operation.dtype), comm_, ours);
  });
}

// One broadcast for each block, grouped: a ring crosses the network once for all ranks of a host, where sends to each
// of them would cross it for each. (Not ncclAllGather for equal blocks: other members may have their blocks elsewhere.)
Status NcclComm::allgatherv(const Operation& operation, const UserStream& stream, const void* send, void* recv,
                            const std::vector<Block>& blocks) {
  const int bytes = nccl_type_of(DRUN_UINT8);
  const auto all = [&](Stream ours) {
    NcclResult result = kNcclSuccess;
    for (int root = 0; root < group_.size() && is_begun(result); ++root) {
      const Block block = blocks[static_cast<std::size_t>(root)];
      if (block.n_bytes == 0) continue;
      void* const place = at(recv, block.offset);
      result = nccl_.Broadcast(root == group_.own ? send : place, place, block.n_bytes, bytes, root, comm_, ours);
    }
    return result;
  };
  return run(operation, stream, [&](Stream ours) { return grouped(nccl_, [&] { return all(ours); }); });
}

Status NcclComm::gather(const Operation& operation, const UserStream& stream, const void* send, void* recv) {
  const std::size_t n_bytes = operation.count * size_of(operation.dtype),
                    size = static_cast<std::size_t>(group_.size());
  std::vector<Block> sent(size), received(size);
  sent[static_cast<std::size_t>(operation.root)] = {0, n_bytes};
  if (operation.root == group_.own) received = equal_blocks(size, n_bytes);
  return alltoall(operation, stream, send, sent, recv, received);
}

Status NcclComm::scatter(const Operation& operation, const UserStream& stream, const void* send, void* recv) {
  const std::size_t n_bytes = operation.count * size_of(operation.dtype),
                    size = static_cast<std::size_t>(group_.size());
  std::vector<Block> sent(size), received(size);
  if (operation.root == group_.own) sent = equal_blocks(size, n_bytes);
  received[static_cast<std::size_t>(operation.root)] = {0, n_bytes};
  return alltoall(operation, stream, send, sent, recv, received);
}

// Includes this rank's own block, which NCCL copies. A block that is in place already is skipped.
Status NcclComm::alltoall(const Operation& operation, const UserStream& stream, const void* send,
                          const std::vector<Block>& send_blocks, void* recv, const std::vector<Block>& recv_blocks) {
  const int bytes = nccl_type_of(DRUN_UINT8);
  const auto all = [&](Stream ours) {
    NcclResult result = kNcclSuccess;
    for (int peer = 0; peer < group_.size() && is_begun(result); ++peer) {
      const Block from = send_blocks[static_cast<std::size_t>(peer)], to = recv_blocks[static_cast<std::size_t>(peer)];
      const bool in_place = peer == group_.own && from.n_bytes > 0 && at(send, from.offset) == at(recv, to.offset);
      if (in_place) continue;
      if (from.n_bytes > 0) result = nccl_.Send(at(send, from.offset), from.n_bytes, bytes, peer, comm_, ours);
      if (to.n_bytes > 0 && is_begun(result)) {
        result = nccl_.Recv(at(recv, to.offset), to.n_bytes, bytes, peer, comm_, ours);
      }
    }
    return result;
  };
  return run(operation, stream, [&](Stream ours) { return grouped(nccl_, [&] { return all(ours); }); });
}

Status NcclComm::transfer(const std::vector<Transfer>& transfers, const std::vector<UserStream>& streams,
                          const std::function<Status()>& meanwhile) {
  std::vector<const Operation*> operations;
  for (const auto& transfer : transfers) operations.push_back(&transfer.operation);
  const auto all = [&](Stream ours) {
    NcclResult result = kNcclSuccess;
    for (const auto& [operation, data] : transfers) {
      const int dtype = nccl_type_of(operation.dtype);
      if (!is_begun(result)) break;
      result = operation.kind == OpKind::kSend ? nccl_.Send(data, operation.count, dtype, operation.root, comm_, ours)
                                               : nccl_.Recv(data, operation.count, dtype, operation.root, comm_, ours);
    }
    return result;
  };
  return run(
      operations, streams, [&](Stream ours) { return grouped(nccl_, [&] { return all(ours); }); }, meanwhile);
}

}  // namespace drun::runtime::gpu
