#include "launcher/bench/perform.h"

#include <cstring>

#include "launcher/bench/settings.h"

namespace drun::bench {

namespace {

std::size_t offset(const Call& call, std::size_t count) {
  return static_cast<std::size_t>(call.rank) * count * element_size(call.dtype);
}

// To the next rank, from the one before. With blocking calls not all may send first: even ranks do, and rank 1 does
// not.
int send_and_receive(const Call& call, const char* send, char* recv) {
  const int next = (call.rank + 1) % call.n_ranks, previous = (call.rank + call.n_ranks - 1) % call.n_ranks;
  const std::size_t n = call.counts.call;
  const auto give = [&] { return drun_send(send, n, call.dtype, next, DRUN_COMM_WORLD, nullptr); };
  const auto take = [&] { return drun_recv(recv, n, call.dtype, previous, DRUN_COMM_WORLD, nullptr); };
  const bool sends_first = call.rank % 2 == 0;
  const int first = sends_first ? give() : take();
  if (first != DRUN_OK) return first;
  return sends_first ? take() : give();
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
      if (call.rank == call.root && send != recv && n > 0) std::memcpy(recv, send, n * element_size(call.dtype));
      return drun_broadcast(recv, n, call.dtype, call.root, DRUN_COMM_WORLD, nullptr);
    case Kind::kReduce:
      return drun_reduce(send, recv, n, call.dtype, call.op, call.root, DRUN_COMM_WORLD, nullptr);
    case Kind::kReduceScatter:
      return drun_reduce_scatter(send, recv, n, call.dtype, call.op, DRUN_COMM_WORLD, nullptr);
    case Kind::kAlltoall:
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
