// Communicator: point-to-point calls, and the collectives in which pairs of ranks exchange data directly.
#include <algorithm>
#include <deque>

#include "runtime/src/arguments.h"
#include "runtime/src/communicator.h"
#include "runtime/src/copy.h"
#include "runtime/src/dtype.h"
#include "runtime/src/gpu/host_copies.h"
#include "runtime/src/gpu/nccl_comm.h"

namespace drun::runtime {
namespace {

bool overlap_anywhere(const void* a, const std::vector<Block>& blocks_a, const void* b,
                      const std::vector<Block>& blocks_b) {
  for (const Block& x : blocks_a) {
    for (const Block& y : blocks_b) {
      if (x.n_bytes > 0 && y.n_bytes > 0 && overlap(at(a, x.offset), x.n_bytes, at(b, y.offset), y.n_bytes))
        return true;
    }
  }
  return false;
}

bool any_bytes(const std::vector<Block>& blocks) {
  return std::any_of(blocks.begin(), blocks.end(), [](const Block& block) { return block.n_bytes > 0; });
}

}  // namespace

Status Communicator::gather(const void* send, void* recv, std::size_t count, drun_dtype dtype, int root,
                            const CallOptions& options) {
  const Arguments check("drun_gather");
  const auto size = static_cast<std::size_t>(this->size());
  if (auto ok = check.elements(count, dtype, size); !ok) return ok;
  if (auto ok = check.root(root, this->size()); !ok) return ok;
  if (auto ok = check.no_scales(options); !ok) return ok;
  const std::size_t n_bytes = count * size_of(dtype);
  if (auto ok = check.buffer("send", send, n_bytes); !ok) return ok;
  char* own = nullptr;
  if (root == rank()) {
    if (auto ok = check.buffer("recv", recv, n_bytes); !ok) return ok;
    own = at(recv, static_cast<std::size_t>(root) * n_bytes);
    if (send != own && overlap(send, n_bytes, recv, size * n_bytes)) {
      return check.wrong("send lies in recv, but not at this rank's place");
    }
  }
  auto operation = begin(OpKind::kGather, count, dtype, options);
  if (!operation) return tl::unexpected<Failure>(operation.error());
  operation->root = root;
  Buffers buffers{&send, n_bytes};
  if (own != nullptr) buffers.written = &recv, buffers.n_written = size * n_bytes;
  return carry_out(
      *operation, options, buffers,
      [&](gpu::NcclComm& nccl, const gpu::UserStream& stream) { return nccl.gather(*operation, stream, send, recv); },
      [&] {
        if (own != nullptr) own = at(recv, static_cast<std::size_t>(root) * n_bytes);
        if (own != nullptr && send != own && n_bytes > 0) copy_bytes(own, send, n_bytes);
        return backend_ ? finish(backend_->gather(*operation, send, recv)) : Status{};
      });
}

Status Communicator::scatter(const void* send, void* recv, std::size_t count, drun_dtype dtype, int root,
                             const CallOptions& options) {
  const Arguments check("drun_scatter");
  const auto size = static_cast<std::size_t>(this->size());
  if (auto ok = check.elements(count, dtype, size); !ok) return ok;
  if (auto ok = check.root(root, this->size()); !ok) return ok;
  if (auto ok = check.no_scales(options); !ok) return ok;
  const std::size_t n_bytes = count * size_of(dtype);
  if (auto ok = check.buffer("recv", recv, n_bytes); !ok) return ok;
  const char* own = nullptr;
  if (root == rank()) {
    if (auto ok = check.buffer("send", send, n_bytes); !ok) return ok;
    own = at(send, static_cast<std::size_t>(root) * n_bytes);
    if (recv != own && overlap(send, size * n_bytes, recv, n_bytes)) {
      return check.wrong("recv lies in send, but not at this rank's place");
    }
  }
  auto operation = begin(OpKind::kScatter, count, dtype, options);
  if (!operation) return tl::unexpected<Failure>(operation.error());
  operation->root = root;
  Buffers buffers{nullptr, 0, &recv, n_bytes};
  if (own != nullptr) buffers.read = &send, buffers.n_read = size * n_bytes;
  return carry_out(
      *operation, options, buffers,
      [&](gpu::NcclComm& nccl, const gpu::UserStream& stream) { return nccl.scatter(*operation, stream, send, recv); },
      [&] {
        if (own != nullptr) own = at(send, static_cast<std::size_t>(root) * n_bytes);
        if (own != nullptr && recv != own && n_bytes > 0) copy_bytes(recv, own, n_bytes);
        return backend_ ? finish(backend_->scatter(*operation, send, recv)) : Status{};
      });
}

Status Communicator::alltoall(const void* send, void* recv, std::size_t count, drun_dtype dtype,
                              const CallOptions& options) {
  const Arguments check("drun_alltoall");
  const auto size = static_cast<std::size_t>(this->size()), rank = static_cast<std::size_t>(this->rank());
  if (auto ok = check.elements(count, dtype, size); !ok) return ok;
  if (auto ok = check.no_scales(options); !ok) return ok;
  const std::size_t n_bytes = count * size_of(dtype);
  if (auto ok = check.buffer("send", send, n_bytes); !ok) return ok;
  if (auto ok = check.buffer("recv", recv, n_bytes); !ok) return ok;
  if (overlap(send, size * n_bytes, recv, size * n_bytes)) return check.wrong("send and recv overlap");
  auto operation = begin(OpKind::kAlltoall, count, dtype, options);
  if (!operation) return tl::unexpected<Failure>(operation.error());
  const auto blocks = equal_blocks(size, n_bytes);
  return carry_out(
      *operation, options, {&send, size * n_bytes, &recv, size * n_bytes},
      [&](gpu::NcclComm& nccl, const gpu::UserStream& stream) {
        return nccl.alltoall(*operation, stream, send, blocks, recv, blocks);
      },
      [&] {
        if (n_bytes > 0) copy_bytes(at(recv, rank * n_bytes), at(send, rank * n_bytes), n_bytes);
        return backend_ ? finish(backend_->alltoall(*operation, send, blocks, recv, blocks)) : Status{};
      });
}

Status Communicator::alltoallv(const void* send, const std::size_t* send_counts, const std::size_t* send_offsets,
                               void* recv, const std::size_t* recv_counts, const std::size_t* recv_offsets,
                               drun_dtype dtype, const CallOptions& options) {
  const Arguments check("drun_alltoallv");
  const int size = this->size(), rank = this->rank();
  auto sent = check.blocks("send", send_counts, send_offsets, size, dtype, false);
  if (!sent) return tl::unexpected<Failure>(sent.error());
  auto received = check.blocks("recv", recv_counts, recv_offsets, size, dtype, true);
  if (!received) return tl::unexpected<Failure>(received.error());
  if (auto ok = check.no_scales(options); !ok) return ok;
  if (auto ok = check.buffer("send", send, any_bytes(*sent) ? 1 : 0); !ok) return ok;
  if (auto ok = check.buffer("recv", recv, any_bytes(*received) ? 1 : 0); !ok) return ok;
  if (send_counts[rank] != recv_counts[rank]) {
    return check.wrong("send_counts and recv_counts of this rank, " + std::to_string(rank) +
                       ", differ: " + std::to_string(send_counts[rank]) + " and " + std::to_string(recv_counts[rank]));
  }
  if (overlap_anywhere(send, *sent, recv, *received)) return check.wrong("send and recv overlap");
  auto operation = begin(OpKind::kAlltoallv, 0, dtype, options);
  if (!operation) return tl::unexpected<Failure>(operation.error());
  return carry_out(
      *operation, options, {&send, end_of(*sent), &recv, end_of(*received), true},
      [&](gpu::NcclComm& nccl, const gpu::UserStream& stream) {
        return nccl.alltoall(*operation, stream, send, *sent, recv, *received);
      },
      [&] {
        const Block own = (*sent)[static_cast<std::size_t>(rank)], place = (*received)[static_cast<std::size_t>(rank)];
        if (own.n_bytes > 0) copy_bytes(at(recv, place.offset), at(send, own.offset), own.n_bytes);
        return backend_ ? finish(backend_->alltoall(*operation, send, *sent, recv, *received)) : Status{};
      });
}

Status Communicator::check_transfer(const TransferCall& call) const {
  const Arguments check(call.kind == OpKind::kSend ? "drun_send" : "drun_recv");
  if (auto ok = check.elements(call.count, call.dtype); !ok) return ok;
  if (call.peer < 0 || call.peer >= size()) {
    return check.wrong("peer " + std::to_string(call.peer) + " is not a rank of " + std::to_string(size()));
  }
  if (call.peer == rank()) return check.wrong("peer " + std::to_string(call.peer) + " is this rank itself");
  if (auto ok = check.no_scales(call.options); !ok) return ok;
  return check.buffer("data", call.data, call.count);
}

Outcome<Operation> Communicator::begin_transfer(const TransferCall& call) {
  auto operation = begin(call.kind, call.count, call.dtype, call.options);
  if (!operation) return operation;
  operation->root = call.peer;
  operation->seq = ++(call.kind == OpKind::kSend ? n_sent_ : n_received_)[call.peer];
  return operation;
}

Status Communicator::transfer(const std::vector<TransferCall>& calls) {
  for (const auto& call : calls) {
    if (auto ok = check_transfer(call); !ok) return ok;
  }
  if (nccl_ == nullptr) return transfer_over_host(calls);
  return enqueued(transfer_with_nccl(calls));
}

Status Communicator::transfer_over_host(const std::vector<TransferCall>& calls) {
  std::vector<Transfer> transfers;
  transfers.reserve(calls.size());
  std::deque<gpu::HostCopies> copies;
  const bool may_be_device = gpu::loaded_driver() != nullptr;
  for (const auto& call : calls) {
    auto operation = begin_transfer(call);
    if (!operation) return tl::unexpected<Failure>(operation.error());
    transfers.push_back({std::move(*operation), call.data});
    if (!may_be_device) continue;
    Transfer& transfer = transfers.back();
    auto& own = copies.emplace_back(transfer.operation, call.options, resources_->pinned(), job_context().call_deadline,
                                    check_job());
    const std::size_t n_bytes = call.count * size_of(call.dtype);
    Status ok;
    if (call.kind == OpKind::kSend) {
      const void* given = transfer.data;
      ok = own.reads(given, n_bytes);
      transfer.data = const_cast<void*>(given);
    } else {
      ok = own.writes(transfer.data, n_bytes);
    }
    if (!ok) return fail_in_copies(own, ok);
  }
  if (transfers.empty()) return {};
  Status done = finish(backend_->transfer(transfers));
  for (auto& own : copies) done = end(own, std::move(done));
  return done;
}

Status Communicator::send(const void* data, std::size_t count, drun_dtype dtype, int peer, const CallOptions& options) {
  return transfer({{OpKind::kSend, const_cast<void*>(data), count, dtype, peer, options}});
}

Status Communicator::recv(void* data, std::size_t count, drun_dtype dtype, int peer, const CallOptions& options) {
  return transfer({{OpKind::kRecv, data, count, dtype, peer, options}});
}

}  // namespace drun::runtime
