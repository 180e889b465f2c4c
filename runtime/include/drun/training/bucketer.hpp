// Tensor fusion: many tensors, few collectives.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "drun/training/compression.hpp"
#include "drun/training/gpu_bucket.hpp"
#include "drun/training/layout.hpp"
#include "drun/training/tensor_list.hpp"
#include "drun/training/transport.hpp"

namespace drun {
inline namespace v0 {
namespace training {

// Reduces one bucket after another. Keeps its buffers, which are as large as the largest bucket so far.
class BucketReducer {
 public:
  void reduce(Transport& transport, const TensorList& tensors, const Bucket& bucket, drun_op op,
              Compression compression) {
    if (compression == Compression::none) return reduce_as_it_is(transport, tensors, bucket, op);
    if (op != DRUN_SUM && op != DRUN_AVG) refuse("compression is for sums and averages");
    const bool is_sum = op == DRUN_SUM, is_f16 = compression == Compression::fp16;
    if (bucket.dtype != DRUN_FLOAT32 && bucket.dtype != DRUN_FLOAT64) {
      reduce_as_it_is(transport, tensors, bucket, op);
    } else if (tensors.memory() == DRUN_MEMORY_DEVICE) {
      is_f16 ? gpu_.reduce_as<Float16>(transport, tensors, bucket, is_sum)
             : gpu_.reduce_as<Bfloat16>(transport, tensors, bucket, is_sum);
    } else if (bucket.dtype == DRUN_FLOAT32) {
      is_f16 ? compressed<float>(transport, tensors, bucket, is_sum, sum_f16_)
             : compressed<float>(transport, tensors, bucket, is_sum, sum_bf16_);
    } else {
      is_f16 ? compressed<double>(transport, tensors, bucket, is_sum, sum_f16_)
             : compressed<double>(transport, tensors, bucket, is_sum, sum_bf16_);
    }
  }
  // Number of values that were cut so far. Waits for the stream if tensors are in memory of a GPU.
  std::uint64_t n_cut() const { return n_cut_ + gpu_.n_cut(); }

 private:
  void reduce_as_it_is(Transport& transport, const TensorList& tensors, const Bucket& bucket, drun_op op) {
    if (tensors.memory() == DRUN_MEMORY_DEVICE) return gpu_.reduce(transport, tensors, bucket, op);
    const Piece& first = bucket.pieces.front();
    if (bucket.pieces.size() == 1) {
      return transport.allreduce(tensors[first.tensor].at(first.offset), bucket.count, bucket.dtype, op, bucket.name);
    }
    const std::size_t element = size_of(bucket.dtype);
    bytes_.resize(bucket.count * element);
    char* end = bytes_.data();
    for (const Piece& piece : bucket.pieces) {
      char* const place = bytes_.data() + piece.place * element;
      std::fill(end, place, '\0');
      std::memcpy(place, tensors[piece.tensor].at(piece.offset), piece.count * element);
      end = place + piece.count * element;
    }
    transport.allreduce(bytes_.data(), bucket.count, bucket.dtype, op, bucket.name);
    for (const Piece& piece : bucket.pieces) {
      std::memcpy(tensors[piece.tensor].at(piece.offset), bytes_.data() + piece.place * element, piece.count * element);
    }
  }

  // Divides first, also for a sum, because halves have a small range.
  template <typename T, typename Half>
  void compressed(Transport& transport, const TensorList& tensors, const Bucket& bucket, bool is_sum,
                  HalfSum<Half>& sum) {
    halves_.resize(bucket.count);
    std::uint16_t* end = halves_.data();
    for (const Piece& piece : bucket.pieces) {
      const auto* data = reinterpret_cast<const T*>(tensors[piece.tensor].at(piece.offset));
      std::uint16_t* const place = halves_.data() + piece.place;
      std::fill(end, place, std::uint16_t{0});
      n_cut_ += narrow<Half>(data, piece.count, transport.size(), place);
      end = place + piece.count;
    }
    sum(transport, halves_.data(), bucket.count, bucket.name);
    const T factor = is_sum ? static_cast<T>(transport.size()) : T{1};
    for (const Piece& piece : bucket.pieces) {
      auto* const data = reinterpret_cast<T*>(tensors[piece.tensor].at(piece.offset));
      widen<Half>(halves_.data() + piece.place, piece.count, factor, data);
    }
  }

  std::vector<char> bytes_;
  std::vector<std::uint16_t> halves_;
  HalfSum<Float16> sum_f16_;
  HalfSum<Bfloat16> sum_bf16_;
  GpuBucketReducer gpu_;
  std::uint64_t n_cut_ = 0;
};

}  // namespace training

// Reduces many tensors with few collectives. Tensors are added once, in the same order on all ranks; the first
// allreduce checks that they agree. Tensors in memory of a GPU, all on the same one, are reduced in the order of the
// transport's stream, without waiting for it.
// One thread at a time. The transport, its stream and the tensors' memory must outlive it. Methods throw Error.
class Bucketer {
 public:
  explicit Bucketer(Transport& transport = world(), std::size_t bucket_bytes = kBucketBytes)
      : transport_(transport), bucket_bytes_(bucket_bytes) {}

  // Registers `count` elements at `data`. Throws DRUN_ERROR_ARGUMENT for a name that was used before, DRUN_ERROR_STATE
  // after the first allreduce.
  void add(const std::string& name, void* data, std::size_t count, drun_dtype dtype) {
    tensors_.add(name, data, count, dtype);
  }
  template <typename T>
  void add(const std::string& name, T* data, std::size_t count) {
    add(name, data, count, dtype_of<T>());
  }

  // Collective; allreduce calls it. Throws DRUN_ERROR_MISMATCH, with the same text on all ranks, unless all ranks have
  // the same tensors and `settings`: the text names the first tensor that differs and the ranks at fault.
  void seal(const std::string& settings = "") {
    if (tensors_.is_sealed()) return;
    tensors_.seal(transport_, training::settings_in_words(settings, bucket_bytes_));
    buckets_ = training::lay_out(tensors_, training::whole(tensors_), bucket_bytes_);
  }

  // Collective. Reduces all tensors in place. Compression is for DRUN_SUM and DRUN_AVG of f32 and f64; other types
  // travel uncompressed.
  void allreduce(drun_op op = DRUN_AVG, Compression compression = Compression::none) {
    seal();
    // One bucket at a time. Overlap with computation would begin here.
    for (const auto& bucket : buckets_) reducer_.reduce(transport_, tensors_, bucket, op, compression);
  }

  const std::vector<training::Bucket>& buckets() const { return buckets_; }
  // Number of this rank's values so far that exceeded the range of the half type and were cut.
  std::uint64_t n_cut() const { return reducer_.n_cut(); }

 private:
  Transport& transport_;
  std::size_t bucket_bytes_;
  training::TensorList tensors_;
  std::vector<training::Bucket> buckets_;
  training::BucketReducer reducer_;
};

}  // namespace v0
}  // namespace drun
