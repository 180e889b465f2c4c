// Buckets of tensors in memory of a GPU.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "drun/gpu.h"
#include "drun/training/compression.hpp"
#include "drun/training/gpu_buffer.hpp"
#include "drun/training/layout.hpp"
#include "drun/training/tensor_list.hpp"
#include "drun/training/transport.hpp"

namespace drun {
inline namespace v0 {
namespace training {

// As BucketReducer, but enqueues on the transport's stream and does not wait for it.
class GpuBucketReducer {
 public:
  void reduce(Transport& transport, const TensorList& tensors, const Bucket& bucket, drun_op op) {
    if (bucket.pieces.size() == 1) {
      const Piece& only = bucket.pieces.front();
      return transport.allreduce(tensors[only.tensor].at(only.offset), bucket.count, bucket.dtype, op, bucket.name);
    }
    void* const stream = transport.stream();
    find_pieces(tensors, bucket);
    void* const all = memory_for(transport, bucket.count * size_of(bucket.dtype));
    check(drun_gpu_pack(pieces_.data(), pieces_.size(), bucket.dtype, all, stream));
    transport.allreduce(all, bucket.count, bucket.dtype, op, bucket.name);
    check(drun_gpu_unpack(all, pieces_.data(), pieces_.size(), bucket.dtype, stream));
  }

  // Reduces a bucket of f32 or f64 as halves: a sum or an average. NCCL may add halves in half precision.
  template <typename Half>
  void reduce_as(Transport& transport, const TensorList& tensors, const Bucket& bucket, bool is_sum) {
    void* const stream = transport.stream();
    const int size = transport.size();
    find_pieces(tensors, bucket);
    void* const halves = memory_for(transport, bucket.count * sizeof(std::uint16_t));
    check(drun_gpu_narrow(pieces_.data(), pieces_.size(), bucket.dtype, size,
                          static_cast<double>(largest_of<Half>(size)), halves, Half::kDtype,
                          n_cut_.get(stream, pieces_.front().data), stream));
    transport.allreduce(halves, bucket.count, Half::kDtype, DRUN_SUM, bucket.name);
    check(
        drun_gpu_widen(halves, Half::kDtype, is_sum ? size : 1, pieces_.data(), pieces_.size(), bucket.dtype, stream));
  }

  // Number of values that were cut so far. Waits for the stream.
  std::uint64_t n_cut() const { return n_cut_.value(); }

 private:
  void find_pieces(const TensorList& tensors, const Bucket& bucket) {
    pieces_.clear();
    std::size_t end = 0;
    for (const Piece& piece : bucket.pieces) {
      if (piece.place > end) pieces_.push_back({nullptr, piece.place - end});
      pieces_.push_back({tensors[piece.tensor].at(piece.offset), piece.count});
      end = piece.place + piece.count;
    }
  }

  // Buckets are the same on all ranks, so all ranks come to a larger one together, which will_use() needs.
  void* memory_for(Transport& transport, std::size_t n_bytes) {
    constexpr std::size_t kMinToRegister = std::size_t{4} << 20;  // below, drun_alloc does not use NCCL's
    void* const memory = buffer_.resize(n_bytes, transport.stream(), pieces_.front().data);
    if (buffer_.n_bytes() > n_known_ && buffer_.n_bytes() >= kMinToRegister) {
      transport.will_use(memory, buffer_.n_bytes());
    }
    n_known_ = buffer_.n_bytes();
    return memory;
  }

  GpuBuffer buffer_;
  std::size_t n_known_ = 0;  // size of buffer_ that the transport was told
  GpuCounter n_cut_;
  std::vector<drun_gpu_piece> pieces_;
};

}  // namespace training
}  // namespace v0
}  // namespace drun
