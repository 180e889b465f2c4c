#include "runtime/src/communicator.h"

#include <cstring>
#include <limits>

#include "runtime/src/backend/shm/shm_backend.h"
#include "runtime/src/backend/tcp/tcp_backend.h"
#include "runtime/src/dtype.h"

namespace drun::runtime {
namespace {

bool overlap(const void* a, const void* b, std::size_t n_bytes_a, std::size_t n_bytes_b) {
  const auto from_a = reinterpret_cast<std::uintptr_t>(a), from_b = reinterpret_cast<std::uintptr_t>(b);
  return from_a < from_b + n_bytes_b && from_b < from_a + n_bytes_a;
}

Status argument(const std::string& function, const std::string& what) {
  return failure(DRUN_ERROR_ARGUMENT, function + ": " + what);
}

Status check_buffer(const std::string& function, const char* name, const void* buffer, std::size_t count) {
  if (buffer == nullptr && count > 0) return argument(function, std::string(name) + " is a null pointer");
  return {};
}

Status check_count(const std::string& function, std::size_t count, drun_dtype dtype, std::size_t n_blocks) {
  if (!is_dtype(dtype)) return argument(function, "there is no element type " + std::to_string(dtype));
  if (count > std::numeric_limits<std::size_t>::max() / 2 / size_of(dtype) / n_blocks) {
    return argument(function, "a count of " + std::to_string(count) + " is too large");
  }
  return {};
}

}  // namespace

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

Outcome<Operation> Communicator::begin(OpKind kind, std::size_t count, drun_dtype dtype) {
  if (broken_) {
    Failure again = *broken_;
    again.text = "an earlier collective failed: " + again.text;
    return tl::unexpected<Failure>(std::move(again));
  }
  Operation operation;
  operation.kind = kind;
  operation.count = count;
  operation.dtype = dtype;
  operation.seq = ++seq_;
  operation.timeout = world_.timeouts.op;
  operation.deadline = Clock::now() + operation.timeout;
  return operation;
}

Status Communicator::finish(Status status) {
  if (!status) broken_ = status.error();
  return status;
}

Status Communicator::allreduce(const void* send, void* recv, std::size_t count, drun_dtype dtype, drun_op op) {
  if (auto ok = check_count("drun_allreduce", count, dtype, 1); !ok) return ok;
  if (!is_op(op)) return argument("drun_allreduce", "there is no reduction " + std::to_string(op));
  if (!can_reduce(dtype)) {
    return failure(DRUN_ERROR_UNSUPPORTED,
                   std::string("drun_allreduce: this version can't reduce ") + name_of(dtype) + "; convert it to f32");
  }
  if (auto ok = check_buffer("drun_allreduce", "send", send, count); !ok) return ok;
  if (auto ok = check_buffer("drun_allreduce", "recv", recv, count); !ok) return ok;
  const std::size_t n_bytes = count * size_of(dtype);
  if (send != recv && overlap(send, recv, n_bytes, n_bytes)) {
    return argument("drun_allreduce", "send and recv overlap without being equal");
  }
  auto operation = begin(OpKind::kAllreduce, count, dtype);
  if (!operation) return tl::unexpected<Failure>(operation.error());
  operation->op = op;
  if (send != recv && n_bytes > 0) std::memcpy(recv, send, n_bytes);
  if (!backend_) return {};  // the sum, product, minimum, maximum and average of one
  return finish(backend_->allreduce(*operation, recv));
}

Status Communicator::broadcast(void* data, std::size_t count, drun_dtype dtype, int root) {
  if (auto ok = check_count("drun_broadcast", count, dtype, 1); !ok) return ok;
  if (root < 0 || root >= world_.size()) {
    return argument("drun_broadcast",
                    "root " + std::to_string(root) + " is not a rank of " + std::to_string(world_.size()));
  }
  if (auto ok = check_buffer("drun_broadcast", "data", data, count); !ok) return ok;
  auto operation = begin(OpKind::kBroadcast, count, dtype);
  if (!operation) return tl::unexpected<Failure>(operation.error());
  operation->root = root;
  return backend_ ? finish(backend_->broadcast(*operation, data)) : Status{};
}

Status Communicator::allgather(const void* send, void* recv, std::size_t count, drun_dtype dtype) {
  const auto size = static_cast<std::size_t>(world_.size()), rank = static_cast<std::size_t>(world_.rank());
  if (auto ok = check_count("drun_allgather", count, dtype, size); !ok) return ok;
  if (auto ok = check_buffer("drun_allgather", "send", send, count); !ok) return ok;
  if (auto ok = check_buffer("drun_allgather", "recv", recv, count); !ok) return ok;
  const std::size_t n_bytes = count * size_of(dtype);
  char* own = static_cast<char*>(recv) + (count > 0 ? rank * n_bytes : 0);
  if (send != own && overlap(send, recv, n_bytes, size * n_bytes)) {
    return argument("drun_allgather", "send lies in recv, but not at this rank's place");
  }
  auto operation = begin(OpKind::kAllgather, count, dtype);
  if (!operation) return tl::unexpected<Failure>(operation.error());
  if (send != own && n_bytes > 0) std::memcpy(own, send, n_bytes);
  return backend_ ? finish(backend_->allgather(*operation, recv)) : Status{};
}

Status Communicator::barrier() {
  auto operation = begin(OpKind::kBarrier, 0, DRUN_INT8);
  if (!operation) return tl::unexpected<Failure>(operation.error());
  return backend_ ? finish(backend_->barrier(*operation)) : Status{};
}

}  // namespace drun::runtime
