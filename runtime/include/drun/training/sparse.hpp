// Sums for which every rank sends only its large elements; the rest is kept and added to those of the next step.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <numeric>
#include <string>
#include <type_traits>
#include <variant>
#include <vector>

#include "drun/training/gpu_sparse.hpp"
#include "drun/training/layout.hpp"
#include "drun/training/selection.hpp"
#include "drun/training/sparse_parts.hpp"
#include "drun/training/tensor_list.hpp"
#include "drun/training/transport.hpp"

namespace drun {
inline namespace v0 {

namespace training {

inline std::string in_words(const Selection& selection) {
  const auto* top_k = std::get_if<TopK>(&selection);
  char number[32];
  std::snprintf(number, sizeof number, "%.9g",
                top_k != nullptr ? top_k->fraction : std::get<Threshold>(selection).value);
  return (top_k != nullptr ? "topk=" : "threshold=") + std::string(number);
}

// Throws DRUN_ERROR_PEER unless the indices ascend and are inside their tensors. Precondition: `parts` has as many as
// `counts` says.
template <typename T, typename Index>
void check_indices(const std::vector<Tensor>& tensors, const std::vector<std::uint64_t>& counts,
                   const SparseParts<T, Index>& parts) {
  auto index = parts.indices.begin();
  for (std::size_t i = 0; i < counts.size(); ++i) {
    const Tensor& tensor = tensors[i % tensors.size()];
    std::uint64_t least = 0;
    for (std::uint64_t n = counts[i]; n > 0; --n, ++index) {
      const std::uint64_t place = *index;
      if (place < least || place >= tensor.count) {
        refuse_part(tensor, i / tensors.size(),
                    "index " + std::to_string(place) + " where one from " + std::to_string(least) + " to " +
                        std::to_string(tensor.count) + " (exclusive) can be");
      }
      least = place + 1;
    }
  }
}

}  // namespace training

// Error feedback: the elements that were not sent before are added first; then the chosen elements are sent unchanged,
// and the rest is kept, bit by bit. Received elements are added in rank order, so all ranks get the same bits.
// Pays on networks if the fraction that is sent is below 1 / size, because every rank gets the indices and values of
// all ranks.
// Tensors in memory of a GPU, all on the same one, are reduced in the order of the transport's stream; the host waits
// for it once.
// One thread at a time. The transport, its stream and the tensors' memory must outlive it. Methods throw Error.
class SparseAllreduce {
 public:
  // Tensors of up to `bucket_bytes` in total travel together. Throws DRUN_ERROR_ARGUMENT for a fraction outside of 0 to
  // 1 or a negative threshold.
  explicit SparseAllreduce(const Selection& selection, Transport& transport = world(),
                           std::size_t bucket_bytes = kBucketBytes)
      : selection_(selection), transport_(transport), bucket_bytes_(bucket_bytes) {
    if (const auto* top_k = std::get_if<TopK>(&selection_)) {
      if (!(top_k->fraction >= 0 && top_k->fraction <= 1)) training::refuse("topk: the fraction must be from 0 to 1");
    } else if (!(std::get<Threshold>(selection_).value >= 0)) {
      training::refuse("threshold: it must not be negative");
    }
  }

  // Registers `count` elements of float or double, as Bucketer::add.
  template <typename T>
  void add(const std::string& name, T* data, std::size_t count) {
    static_assert(std::is_floating_point_v<T>);
    tensors_.add(name, data, count, dtype_of<T>());
  }

  // Collective; see Bucketer::seal. allreduce calls it.
  void seal(const std::string& settings = "") {
    if (tensors_.is_sealed()) return;
    // Allocate before the seal, because that may fail.
    if (tensors_.memory() == DRUN_MEMORY_DEVICE) gpu_residuals_.lay_out(tensors_, transport_.stream());
    residuals_.clear();
    groups_.clear();
    for (std::size_t i = 0; i < tensors_.size() && tensors_.memory() != DRUN_MEMORY_DEVICE; ++i) {
      if (tensors_[i].dtype == DRUN_FLOAT32) {
        residuals_.emplace_back(std::vector<float>(tensors_[i].count));
      } else {
        residuals_.emplace_back(std::vector<double>(tensors_[i].count));
      }
    }
    // A tensor larger than a bucket is a group by itself.
    std::size_t n_bytes = 0;
    for (std::size_t i = 0; i < tensors_.size(); ++i) {
      if (tensors_[i].count == 0) continue;
      const std::size_t own_bytes = tensors_[i].count * training::size_of(tensors_[i].dtype);
      const bool fits = n_bytes <= bucket_bytes_ && own_bytes <= bucket_bytes_ - n_bytes;
      if (groups_.empty() || tensors_[groups_.back().back()].dtype != tensors_[i].dtype || !fits) {
        groups_.emplace_back();
        n_bytes = 0;
      }
      groups_.back().push_back(i);
      n_bytes += own_bytes;
    }
    const std::string own = training::in_words(selection_);
    tensors_.seal(transport_, training::settings_in_words(settings.empty() ? own : settings, bucket_bytes_));
  }

  // Collective. Reduces all tensors in place, by DRUN_SUM or DRUN_AVG. After a failure the tensors are undefined.
  void allreduce(drun_op op = DRUN_AVG) {
    if (op != DRUN_SUM && op != DRUN_AVG) training::refuse("sparse tensors can be summed and averaged only");
    seal();
    for (const auto& group : groups_) {
      const bool is_single = tensors_[group.front()].dtype == DRUN_FLOAT32;
      std::uint64_t longest = 0;
      for (const auto i : group) longest = std::max<std::uint64_t>(longest, tensors_[i].count);
      if (longest <= most_short_) {
        is_single ? reduce<float, std::uint32_t>(group, op) : reduce<double, std::uint32_t>(group, op);
      } else {
        is_single ? reduce<float, std::uint64_t>(group, op) : reduce<double, std::uint64_t>(group, op);
      }
    }
  }

  // Elements of tensor number `i`, in the order of add(), that were not sent so far; 0 where they were. T is its type.
  // For tensors in memory of the host.
  template <typename T>
  const std::vector<T>& residual(std::size_t i) const {
    return std::get<std::vector<T>>(residuals_.at(i));
  }

  // The same for tensors in memory of a GPU; the result is in that memory.
  const void* gpu_residual(std::size_t i) const { return gpu_residuals_.of(i); }

  // Tensors of more elements travel with 64-bit indices. For tests, which have no memory for such tensors.
  void set_most_short(std::uint64_t count) { most_short_ = count; }

 private:
  template <typename T, typename Index>
  void reduce(const std::vector<std::size_t>& group, drun_op op) {
    const auto size = static_cast<std::size_t>(transport_.size()), rank = static_cast<std::size_t>(transport_.rank());
    std::vector<training::Tensor> tensors;
    for (const auto i : group) tensors.push_back(tensors_[i]);
    const std::string name = tensors.front().name + (group.size() > 1 ? ".." + tensors.back().name : "");

    if (tensors_.memory() == DRUN_MEMORY_DEVICE) {
      std::vector<void*> residuals;
      for (const auto i : group) residuals.push_back(gpu_residuals_.of(i));
      return gpu_.reduce<T, Index>(transport_, tensors, residuals, selection_, name, op);
    }
    training::SparseCounts counts(group.size(), size);
    training::SparseParts<T, Index> own, all;
    for (std::size_t k = 0; k < group.size(); ++k) counts.own[k] = choose<T, Index>(group[k], own);
    counts.exchange(transport_, tensors, name);
    if (counts.total > 0) {
      all.indices.resize(counts.total);
      all.values.resize(counts.total);
      transport_.allgatherv(own.indices.data(), counts.of_rank[rank], all.indices.data(), counts.of_rank.data(),
                            dtype_of<Index>(), name);
      transport_.allgatherv(own.values.data(), counts.of_rank[rank], all.values.data(), counts.of_rank.data(),
                            dtype_of<T>(), name);
      training::check_indices(tensors, counts.all, all);
    }
    keep(group, counts.own, own);
    add_up(tensors, counts.all, all, op);
  }

  // Adds the residual, and appends the elements to send to `own`; returns their number.
  template <typename T, typename Index>
  std::size_t choose(std::size_t i, training::SparseParts<T, Index>& own) {
    const training::Tensor& tensor = tensors_[i];
    T* data = static_cast<T*>(tensor.data);
    const auto& residual = std::get<std::vector<T>>(residuals_[i]);
    for (std::size_t k = 0; k < tensor.count; ++k) data[k] += residual[k];
    std::vector<Index> chosen;
    if (const auto* top_k = std::get_if<TopK>(&selection_)) {
      std::vector<decltype(training::magnitude(T{}))> scratch;
      const std::size_t n = training::top_k_count(tensor.count, top_k->fraction);
      training::select_top_k(data, tensor.count, n, chosen, scratch);
    } else {
      training::select_threshold(data, tensor.count, std::get<Threshold>(selection_).value, chosen);
    }
    for (const Index index : chosen) own.values.push_back(data[index]);
    own.indices.insert(own.indices.end(), chosen.begin(), chosen.end());
    return chosen.size();
  }

  template <typename T, typename Index>
  void keep(const std::vector<std::size_t>& group, const std::vector<std::uint64_t>& counts,
            const training::SparseParts<T, Index>& own) {
    auto index = own.indices.begin();
    for (std::size_t k = 0; k < group.size(); ++k) {
      const training::Tensor& tensor = tensors_[group[k]];
      auto& residual = std::get<std::vector<T>>(residuals_[group[k]]);
      const T* data = static_cast<const T*>(tensor.data);
      residual.assign(data, data + tensor.count);
      for (std::uint64_t n = counts[k]; n > 0; --n) residual[*index++] = 0;
    }
  }

  template <typename T, typename Index>
  void add_up(const std::vector<training::Tensor>& tensors, const std::vector<std::uint64_t>& counts,
              const training::SparseParts<T, Index>& all, drun_op op) {
    for (const auto& tensor : tensors) std::fill_n(static_cast<T*>(tensor.data), tensor.count, T{0});
    auto index = all.indices.begin();
    auto value = all.values.begin();
    for (std::size_t i = 0; i < counts.size(); ++i) {
      T* data = static_cast<T*>(tensors[i % tensors.size()].data);
      for (std::uint64_t n = counts[i]; n > 0; --n) data[*index++] += *value++;
    }
    if (op == DRUN_SUM) return;
    const T divisor = static_cast<T>(transport_.size());
    for (const auto& tensor : tensors) {
      T* data = static_cast<T*>(tensor.data);
      for (std::size_t k = 0; k < tensor.count; ++k) data[k] /= divisor;
    }
  }

  Selection selection_;
  Transport& transport_;
  std::size_t bucket_bytes_;
  training::TensorList tensors_;
  std::vector<std::variant<std::vector<float>, std::vector<double>>> residuals_;
  training::GpuResiduals gpu_residuals_;
  training::GpuSparseReducer gpu_;
  std::vector<std::vector<std::size_t>> groups_;  // tensors that travel together, of one element type, by number
  std::uint64_t most_short_ = std::uint64_t{1} << 32;
};

}  // namespace v0
}  // namespace drun
