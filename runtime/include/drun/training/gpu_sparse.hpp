// Sparse sums of tensors in memory of a GPU.
#pragma once

#include <cstddef>
#include <cstdint>
#include <numeric>
#include <string>
#include <variant>
#include <vector>

#include "drun/gpu.h"
#include "drun/training/gpu_buffer.hpp"
#include "drun/training/selection.hpp"
#include "drun/training/sparse_parts.hpp"
#include "drun/training/tensor_list.hpp"
#include "drun/training/transport.hpp"

namespace drun {
inline namespace v0 {
namespace training {

// The residuals of tensors, which were not sent yet: one allocation in memory of the tensors' GPU.
class GpuResiduals {
 public:
  // Allocates the residuals and enqueues clearing them on `stream`.
  void lay_out(const TensorList& tensors, void* stream) {
    constexpr std::size_t kAlignment = 256;
    const void* like = nullptr;
    std::size_t n_bytes = 0;
    begins_.clear();
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      if (tensors[i].count > 0) like = tensors[i].data;
      begins_.push_back(n_bytes);
      n_bytes += (tensors[i].count * size_of(tensors[i].dtype) + kAlignment - 1) / kAlignment * kAlignment;
    }
    check(drun_gpu_clear(buffer_.resize(n_bytes, stream, like), n_bytes, stream));
  }
  // Residual of tensor number `i`, in memory of the GPU.
  void* of(std::size_t i) const { return buffer_.as<char>() + begins_.at(i); }

 private:
  GpuBuffer buffer_;
  std::vector<std::size_t> begins_;
};

// Does what SparseAllreduce does on the host, with the same bits, on the transport's stream. Waits for the stream to
// learn the number of elements to send.
class GpuSparseReducer {
 public:
  // Reduces tensors in place. All have the element type T and indices that fit Index; none is empty. `residuals` has
  // one per tensor.
  template <typename T, typename Index>
  void reduce(Transport& transport, const std::vector<Tensor>& tensors, const std::vector<void*>& residuals,
              const Selection& selection, const std::string& name, drun_op op) {
    constexpr drun_dtype kType = dtype_of<T>(), kIndex = dtype_of<Index>();
    void* const stream = transport.stream();
    const auto size = static_cast<std::size_t>(transport.size()), rank = static_cast<std::size_t>(transport.rank());
    const void* const like = tensors.front().data;

    SparseCounts counts(tensors.size(), size);
    find<T>(tensors, residuals, selection, stream, counts.own);
    const auto n_own = std::accumulate(counts.own.begin(), counts.own.end(), std::size_t{0});
    own_indices_.resize(n_own * sizeof(Index), stream, like);
    own_values_.resize(n_own * sizeof(T), stream, like);
    std::size_t begin = 0;
    for (std::size_t k = 0; k < tensors.size(); begin += counts.own[k], ++k) {
      check(drun_gpu_take(tensors[k].data, tensors[k].count, kType, selection_of(k), own_indices_.as<Index>() + begin,
                          kIndex, own_values_.as<T>() + begin, stream));
    }

    counts.exchange(transport, tensors, name);
    refuse_wild_indices();  // after the exchange, which gives the better error if a rank has died
    if (counts.total > 0) {
      indices_.resize(counts.total * sizeof(Index), stream, like);
      values_.resize(counts.total * sizeof(T), stream, like);
      transport.allgatherv(own_indices_.data(), counts.of_rank[rank], indices_.data(), counts.of_rank.data(), kIndex,
                           name);
      transport.allgatherv(own_values_.data(), counts.of_rank[rank], values_.data(), counts.of_rank.data(), kType,
                           name);
    }

    begin = 0;
    for (std::size_t k = 0; k < tensors.size(); begin += counts.own[k], ++k) {
      const std::size_t count = tensors[k].count;
      check(drun_gpu_copy(residuals[k], tensors[k].data, count * sizeof(T), stream));
      check(drun_gpu_scatter_zero(residuals[k], count, kType, own_indices_.as<Index>() + begin, kIndex, counts.own[k],
                                  n_wild_.get(stream, like), stream));
      check(drun_gpu_clear(tensors[k].data, count * sizeof(T), stream));
    }
    begin = 0;
    for (std::size_t i = 0; i < counts.all.size(); begin += counts.all[i], ++i) {
      const Tensor& tensor = tensors[i % tensors.size()];
      check(drun_gpu_scatter_add(tensor.data, tensor.count, kType, indices_.as<Index>() + begin, kIndex,
                                 values_.as<T>() + begin, counts.all[i], n_wild_.get(stream, like), stream));
    }
    if (op == DRUN_SUM) return;
    for (const Tensor& tensor : tensors) {
      check(drun_gpu_divide(tensor.data, tensor.count, kType, static_cast<double>(size), stream));
    }
  }

 private:
  char* selection_of(std::size_t k) const { return selections_.as<char>() + selection_begins_[k]; }

  // Adds the residuals, selects the elements to send, and stores their number by tensor in `counts`.
  template <typename T>
  void find(const std::vector<Tensor>& tensors, const std::vector<void*>& residuals, const Selection& selection,
            void* stream, std::vector<std::uint64_t>& counts) {
    constexpr drun_dtype kType = dtype_of<T>();
    selection_begins_.clear();
    std::size_t n_bytes = 0;
    for (const Tensor& tensor : tensors) {
      selection_begins_.push_back(n_bytes);
      n_bytes += (drun_gpu_selection_bytes(tensor.count) + 7) / 8 * 8;
    }
    selections_.resize(n_bytes, stream, tensors.front().data);
    for (std::size_t k = 0; k < tensors.size(); ++k) {
      const Tensor& tensor = tensors[k];
      check(drun_gpu_add(tensor.data, residuals[k], tensor.count, kType, stream));
      if (const auto* top_k = std::get_if<TopK>(&selection)) {
        counts[k] = top_k_count(tensor.count, top_k->fraction);
        check(drun_gpu_find_top_k(tensor.data, tensor.count, kType, counts[k], selection_of(k), stream));
      } else {
        check(drun_gpu_find_threshold(tensor.data, tensor.count, kType, std::get<Threshold>(selection).value,
                                      selection_of(k), stream));
      }
    }
    if (!std::holds_alternative<Threshold>(selection)) return;
    for (std::size_t k = 0; k < tensors.size(); ++k) {
      check(drun_gpu_read(&counts[k], selection_of(k), sizeof counts[k], stream));
    }
  }

  // For the call before, whose kernels have skipped and counted invalid indices.
  void refuse_wild_indices() const {
    if (n_wild_.value() == 0) return;
    refuse("a rank sent the index of an element that its tensor does not have", DRUN_ERROR_PEER);
  }

  GpuBuffer selections_, own_indices_, own_values_, indices_, values_;
  GpuCounter n_wild_;
  std::vector<std::size_t> selection_begins_;
};

}  // namespace training
}  // namespace v0
}  // namespace drun
