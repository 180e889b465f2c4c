#include "bench/perform.h"

#include <cstring>

#include "bench/settings.h"
#include "runtime/include/drun/gpu.h"

namespace drun::bench {

namespace {

std::size_t offset(const Call& call, std::size_t count) {
  return static_cast<std::size_t>(call.rank) * count * element_size(call.dtype);
}

// A group of sends and receives at the same time, as in nccl-tests. end() returns the first status that is not
// DRUN_OK.
class Together {
 public:
  explicit Together(const Call& call) : call_(call), status_(drun_group_start()) {}
  void send(const char* data, int to) { note(drun_send(data, n(), call_.dtype, to, DRUN_COMM_WORLD, nullptr)); }
  void recv(char* data, int from) { note(drun_recv(data, n(), call_.dtype, from, DRUN_COMM_WORLD, nullptr)); }
  int end() {
    note(drun_group_end());
    return status_;
  }

 private:
  std::size_t n() const { return call_.counts.call; }
  void note(int status) {
    if (status_ == DRUN_OK) status_ = status;
  }
  const Call& call_;
  int status_;
};

int copy(char* to, const char* from, std::size_t n_bytes, bool on_gpu) {
  if (on_gpu) return drun_gpu_copy(to, from, n_bytes, nullptr);
  std::memcpy(to, from, n_bytes);
  return DRUN_OK;
}

// Sends to the next rank and receives from the previous one.
int send_and_receive(const Call& call, const char* send, char* recv) {
  Together together(call);
  together.send(send, (call.rank + 1) % call.n_ranks);
  together.recv(recv, (call.rank + call.n_ranks - 1) % call.n_ranks);
  return together.end();
}

// drun_alltoall does not work in place: received data may overwrite data that has not been sent yet.
int alltoall_in_place(const Call& call, char* data) {
  Together together(call);
  for (int distance = 1; distance < call.n_ranks; ++distance) {
    const int to = (call.rank + distance) % call.n_ranks, from = (call.rank + call.n_ranks - distance) % call.n_ranks;
    const std::size_t block = call.counts.call * element_size(call.dtype);
    together.send(data + static_cast<std::size_t>(to) * block, to);
    together.recv(data + static_cast<std::size_t>(from) * block, from);
  }
  return together.end();
}

}  // namespace

const char* input(const Call& call, const Buffers& buffers, bool in_place) {
  return in_place ? buffers.recv + offset(call, call.counts.send_offset) : buffers.send;
}

char* output(const Call& call, const Buffers& buffers, bool in_place) {
  return in_place ? buffers.recv + offset(call, call.counts.recv_offset) : buffers.recv;
}

int perform(const Call& call, const Buffers& buffers, bool in_place) {
  const char* send = input(call, buffers, in_place);
  char* recv = output(call, buffers, in_place);
  const std::size_t n = call.counts.call;
  switch (call.kind) {
    case Kind::kAllReduce:
      return drun_allreduce(send, recv, n, call.dtype, call.op, DRUN_COMM_WORLD, nullptr);
    case Kind::kAllGather:
      return drun_allgather(send, recv, n, call.dtype, DRUN_COMM_WORLD, nullptr);
    case Kind::kBroadcast:
      if (call.rank == call.root && send != recv && n > 0) {
        if (const int status = copy(recv, send, n * element_size(call.dtype), buffers.on_gpu)) return status;
      }
      return drun_broadcast(recv, n, call.dtype, call.root, DRUN_COMM_WORLD, nullptr);
    case Kind::kReduce:
      return drun_reduce(send, recv, n, call.dtype, call.op, call.root, DRUN_COMM_WORLD, nullptr);
    case Kind::kReduceScatter:
      return drun_reduce_scatter(send, recv, n, call.dtype, call.op, DRUN_COMM_WORLD, nullptr);
    case Kind::kAlltoall:
      if (in_place) return alltoall_in_place(call, recv);
      return drun_alltoall(send, recv, n, call.dtype, DRUN_COMM_WORLD, nullptr);
    case Kind::kGather:
      return drun_gather(send, recv, n, call.dtype, call.root, DRUN_COMM_WORLD, nullptr);
    case Kind::kScatter:
      return drun_scatter(send, recv, n, call.dtype, call.root, DRUN_COMM_WORLD, nullptr);
    case Kind::kSendRecv:
      return send_and_receive(call, send, recv);
    case Kind::kBarrier:
      return drun_barrier(DRUN_COMM_WORLD, nullptr);
  }
  return DRUN_ERROR_ARGUMENT;
}

}  // namespace drun::bench
