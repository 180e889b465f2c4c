// Communicator: the collectives that reduce.
#include <algorithm>
#include <deque>
#include <utility>
#include <vector>

#include "runtime/src/arguments.h"
#include "runtime/src/communicator.h"
#include "runtime/src/copy.h"
#include "runtime/src/dtype.h"
#include "runtime/src/gpu/host_copies.h"
#include "runtime/src/gpu/nccl_comm.h"
#include "runtime/src/span.h"

namespace drun::runtime {
namespace {

// Piece size of a reduce: while one piece goes up an edge of the tree, the next is on the edge below. The same on all
// ranks.
constexpr std::size_t kTreePieceElements = 256u << 10;
// Maximum size of fused allreduces of a group: up to here copying costs less than another message. The same on all
// ranks.
constexpr std::size_t kFusedBytes = 4u << 20;

}  // namespace

template <typename Reduce>
Status Communicator::in_pieces(const Operation& operation, const void* send, void* recv, std::size_t most,
                               const Reduce& reduce) {
  const drun_dtype dtype = reduced_as(operation.dtype);
  const bool in_recv = dtype == operation.dtype && recv != nullptr;
  const std::size_t count = operation.count;
  std::size_t first = 0;
  do {  // also without elements: the ranks must still agree on the call
    const std::size_t n = std::min(most, count - first), offset = first * size_of(operation.dtype);
    const Span data{in_recv ? at(recv, offset) : resources_->scratch().of(n * size_of(dtype)), n, dtype};
    stage(operation, at(send, offset), data.data, n);
    if (auto done = finish(reduce(data)); !done) return done;
    if (recv != nullptr) unstage(operation, data.data, at(recv, offset), n);
    first += n;
  } while (first < count);
  return {};
}

Status Communicator::check_allreduce(const AllreduceCall& call, drun_dtype dtype, drun_op op,
                                     const CallOptions& options) const {
  const Arguments check("drun_allreduce");
  if (auto ok = check.elements(call.count, dtype); !ok) return ok;
  if (op == DRUN_ADASUM) {
    if (!is_wide_float(dtype)) {
      return check.wrong("adasum is for f32 and f64, not for " + std::string(name_of(dtype)));
    }
  } else if (auto ok = check.reduction(op); !ok) {
    return ok;
  }
  if (auto ok = check.scales(options, dtype); !ok) return ok;
  const std::size_t n_bytes = call.count * size_of(dtype);
  if (auto ok = check.buffer("send", call.send, n_bytes); !ok) return ok;
  if (auto ok = check.buffer("recv", call.recv, n_bytes); !ok) return ok;
  if (call.send != call.recv && overlap(call.send, n_bytes, call.recv, n_bytes)) {
    return check.wrong("send and recv overlap without being equal");
  }
  return {};
}

Status Communicator::allreduce(const void* send, void* recv, std::size_t count, drun_dtype dtype, drun_op op,
                               const CallOptions& options) {
  if (auto ok = check_allreduce({send, recv, count}, dtype, op, options); !ok) return ok;
  const bool is_of_gpu = may_be_of_gpu(options);
  const bool asks_for_time = !is_of_gpu && op != DRUN_ADASUM && backend_ && backend_->asks_for_time();
  auto operation = begin(OpKind::kAllreduce, count, dtype, options, asks_for_time);
  if (!operation) return tl::unexpected<Failure>(operation.error());
  operation->op = op;
  return carry_out(
      *operation, options, is_of_gpu, {&send, count * size_of(dtype), &recv, count * size_of(dtype)},
      [&](gpu::NcclComm& nccl, const gpu::UserStream& stream) {
        if (op == DRUN_ADASUM) return nccl.adasum(*operation, stream, send, recv);
        return nccl.allreduce({{*operation, stream, send, recv}});
      },
      [&] { return allreduce_on_host(*operation, send, recv); });
}

Status Communicator::allreduce_on_host(const Operation& operation, const void* send, void* recv) {
  // The result of a single rank is its input, for every reduction. The data goes in one message where the user's memory
  // can hold it in the type in which it travels.
  const std::size_t count = operation.count;
  const std::size_t most = reduced_as(operation.dtype) == operation.dtype ? count : kPieceElements;
  const bool is_adasum = operation.op == DRUN_ADASUM;
  const bool is_staged = most != count || operation.prescale != 1 || send == recv || is_adasum;
  if (backend_ && !is_staged) {
    const Span data{static_cast<char*>(recv), count, operation.dtype};
    auto done = finish(backend_->allreduce_from(operation, static_cast<const char*>(send), data));
    if (done) unstage(operation, recv, recv, count);
    return done;
  }
  return in_pieces(operation, send, recv, most, [&](const Span& data) {
    if (!backend_) return Status{};
    return is_adasum ? backend_->adasum(operation, data) : backend_->allreduce(operation, data);
  });
}

Status Communicator::allreduce_fused(std::vector<AllreduceCall> calls, std::size_t count, drun_dtype dtype, drun_op op,
                                     const CallOptions& options) {
  Operation operation = to_come(OpKind::kAllreduce, count, dtype, options);
  operation.op = op;
  std::vector<CallOptions> own_options;
  own_options.reserve(calls.size());
  std::deque<gpu::HostCopies> copies;
  std::vector<char> fused(count * size_of(dtype));
  char* place = fused.data();
  for (auto& call : calls) {
    const std::size_t n_bytes = call.count * size_of(dtype);
    own_options.push_back(with_options_of(call, options));
    auto& own = copies.emplace_back(operation, own_options.back(), resources_->pinned(), job_context().call_deadline,
                                    check_job());
    if (auto ok = own.writes(call.recv, n_bytes); !ok) return fail_in_copies(own, ok);
    if (auto ok = own.reads(call.send, n_bytes); !ok) return fail_in_copies(own, ok);
    if (n_bytes > 0) copy_bytes(std::exchange(place, place + n_bytes), call.send, n_bytes);
  }
  CallOptions of_host = options;
  of_host.memory = DRUN_MEMORY_HOST;
  if (auto done = allreduce(fused.data(), fused.data(), count, dtype, op, of_host); !done) return done;
  place = fused.data();
  for (const auto& call : calls) {
    const std::size_t n_bytes = call.count * size_of(dtype);
    if (n_bytes > 0) copy_bytes(call.recv, std::exchange(place, place + n_bytes), n_bytes);
  }
  Status done;
  for (auto& own : copies) done = end(own, std::move(done));
  return done;
}

Status Communicator::allreduce_all(const std::vector<AllreduceCall>& calls, drun_dtype dtype, drun_op op,
                                   const CallOptions& options) {
  for (const auto& call : calls) {
    if (auto ok = check_allreduce(call, dtype, op, options); !ok) return ok;
  }
  std::vector<std::size_t> on_host;
  const auto done = allreduce_over_nccl(calls, dtype, op, options, on_host);
  if (!done) return allreduce_over_host(calls, dtype, op, options);
  if (!*done || on_host.empty()) return *done;
  std::vector<AllreduceCall> rest;
  CallOptions of_rest = options;
  for (const std::size_t i : on_host) {
    rest.push_back(calls[i]);
    // So that ranks which have other calls of the group on the host notice it.
    if (options.names != 0) of_rest.names = digest_of_names(of_rest.names, static_cast<std::uint32_t>(i + 1));
  }
  return allreduce_over_host(rest, dtype, op, of_rest);
}

Status Communicator::allreduce_over_host(const std::vector<AllreduceCall>& calls, drun_dtype dtype, drun_op op,
                                         const CallOptions& options) {
  const std::size_t most = op == DRUN_ADASUM ? 0 : kFusedBytes / size_of(dtype);  // Adasum is per vector: never fused
  for (auto first = calls.begin(); first != calls.end();) {
    auto last = first;
    std::size_t count = 0;
    while (last != calls.end() && count + last->count <= most) count += (last++)->count;
    if (last - first < 2) {
      const CallOptions own = with_options_of(*first, options);
      if (auto done = allreduce(first->send, first->recv, first->count, dtype, op, own); !done) return done;
      ++first;
      continue;
    }
    CallOptions together = options;
    const auto ends_sooner = [](const AllreduceCall& a, const AllreduceCall& b) { return a.timeout < b.timeout; };
    together.timeout = std::max_element(first, last, ends_sooner)->timeout;
    if (auto done = allreduce_fused({first, last}, count, dtype, op, together); !done) return done;
    first = last;
  }
  return {};
}

Status Communicator::reduce(const void* send, void* recv, std::size_t count, drun_dtype dtype, drun_op op, int root,
                            const CallOptions& options) {
  const Arguments check("drun_reduce");
  if (auto ok = check.elements(count, dtype); !ok) return ok;
  if (auto ok = check.reduction(op); !ok) return ok;
  if (auto ok = check.root(root, this->size()); !ok) return ok;
  if (auto ok = check.scales(options, dtype); !ok) return ok;
  const std::size_t n_bytes = count * size_of(dtype);
  if (auto ok = check.buffer("send", send, n_bytes); !ok) return ok;
  const bool is_root = root == rank();
  if (is_root) {
    if (auto ok = check.buffer("recv", recv, n_bytes); !ok) return ok;
    if (send != recv && overlap(send, n_bytes, recv, n_bytes)) {
      return check.wrong("send and recv overlap without being equal");
    }
  }
  auto operation = begin(OpKind::kReduce, count, dtype, options);
  if (!operation) return tl::unexpected<Failure>(operation.error());
  operation->op = op;
  operation->root = root;
  Buffers buffers{&send, n_bytes};
  if (is_root) buffers.written = &recv, buffers.n_written = n_bytes;
  return carry_out(
      *operation, options, buffers,
      [&](gpu::NcclComm& nccl, const gpu::UserStream& stream) { return nccl.reduce(*operation, stream, send, recv); },
      [&] {
        return in_pieces(*operation, send, is_root ? recv : nullptr, kTreePieceElements,
                         [&](const Span& data) { return backend_ ? backend_->reduce(*operation, data) : Status{}; });
      });
}

Status Communicator::reduce_scatter(const void* send, void* recv, std::size_t recv_count, drun_dtype dtype, drun_op op,
                                    const CallOptions& options) {
  const Arguments check("drun_reduce_scatter");
  const auto size = static_cast<std::size_t>(this->size()), rank = static_cast<std::size_t>(this->rank());
  if (auto ok = check.elements(recv_count, dtype, size); !ok) return ok;
  if (auto ok = check.reduction(op); !ok) return ok;
  if (auto ok = check.scales(options, dtype); !ok) return ok;
  const std::size_t n_bytes = recv_count * size_of(dtype);
  if (auto ok = check.buffer("send", send, n_bytes); !ok) return ok;
  if (auto ok = check.buffer("recv", recv, n_bytes); !ok) return ok;
  if (recv != at(send, n_bytes > 0 ? rank * n_bytes : 0) && overlap(send, size * n_bytes, recv, n_bytes)) {
    return check.wrong("recv lies in send, but not at this rank's place");
  }
  auto operation = begin(OpKind::kReduceScatter, recv_count, dtype, options);
  if (!operation) return tl::unexpected<Failure>(operation.error());
  operation->op = op;
  return carry_out(
      *operation, options, {&send, size * n_bytes, &recv, n_bytes},
      [&](gpu::NcclComm& nccl, const gpu::UserStream& stream) {
        return nccl.reduce_scatter(*operation, stream, send, recv);
      },
      [&] { return reduce_scatter_on_host(*operation, send, recv); });
}

Status Communicator::reduce_scatter_on_host(const Operation& operation, const void* send, void* recv) {
  const auto size = static_cast<std::size_t>(this->size()), rank = static_cast<std::size_t>(this->rank());
  const std::size_t recv_count = operation.count, n_bytes = recv_count * size_of(operation.dtype);
  // A piece is the same part of every block. It is staged, because the partial sums need room and `send` must not
  // change.
  const drun_dtype moved = reduced_as(operation.dtype);
  const std::size_t most = std::max<std::size_t>(1, kPieceElements / size);
  std::size_t first = 0;
  do {
    const std::size_t n = std::min(most, recv_count - first), offset = first * size_of(operation.dtype);
    const Span data{resources_->scratch().of(size * n * size_of(moved)), size * n, moved};
    for (std::size_t block = 0; block < size; ++block) {
      stage(operation, at(send, block * n_bytes + offset), data.part(block * n, n).data, n);
    }
    if (auto done = finish(backend_ ? backend_->reduce_scatter(operation, data) : Status{}); !done) return done;
    unstage(operation, data.part(rank * n, n).data, at(recv, offset), n);
    first += n;
  } while (first < recv_count);
  return {};
}

}  // namespace drun::runtime
