// Makes an optimizer of all ranks from an optimizer of one rank.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <variant>

#include "drun/training/bucketer.hpp"
#include "drun/training/method.hpp"
#include "drun/training/partial.hpp"
#include "drun/training/sparse.hpp"

namespace drun {
inline namespace v0 {

// Stands between the gradients of this rank and the code that changes its parameters. Every rank must begin with the
// same parameters.
//
//   drun::DistributedOptimizer optimizer([&] { sgd(parameters, gradients); }, drun::parse_method("bf16"));
//   optimizer.add("weights", parameters.data(), gradients.data(), parameters.size());
//   for (...) { backward(gradients); optimizer.step(); }
//
// One thread at a time. The transport and the memory of parameters and gradients must outlive it. Methods throw Error.
class DistributedOptimizer {
 public:
  using Update = std::function<void()>;

  // `update` reads the gradients that were added and changes the parameters, in the same way on every rank.
  // `bucket_bytes` must be the same on every rank.
  explicit DistributedOptimizer(Update update, const Method& method = Compression::none, Transport& transport = world(),
                                std::size_t bucket_bytes = kBucketBytes)
      : update_(std::move(update)), settings_(in_words(method)) {
    if (const auto* compression = std::get_if<Compression>(&method)) {
      compression_ = *compression;
      dense_ = std::make_unique<Bucketer>(transport, bucket_bytes);
    } else if (const auto* top_k = std::get_if<TopK>(&method)) {
      sparse_ = std::make_unique<SparseAllreduce>(*top_k, transport, bucket_bytes);
    } else if (const auto* threshold = std::get_if<Threshold>(&method)) {
      sparse_ = std::make_unique<SparseAllreduce>(*threshold, transport, bucket_bytes);
    } else {
      partial_ = std::make_unique<PartialAverage>(std::get<PartialUpdate>(method), transport, bucket_bytes);
    }
  }

  // Registers a tensor of `count` elements of float or double, in memory of the host or of a GPU. All ranks add the
  // same tensors in the same order, before the first step.
  template <typename T>
  void add(const std::string& name, T* parameters, T* gradients, std::size_t count) {
    static_assert(std::is_floating_point_v<T>);
    if (dense_) dense_->add(name, gradients, count);
    if (sparse_) sparse_->add(name, gradients, count);
    if (partial_) partial_->add(name, parameters, count);
  }

  // Collective. Replaces the gradients by their average over all ranks, then calls the update. With PartialUpdate it
  // calls the update with this rank's gradients, then averages a part of the parameters. The first step throws
  // DRUN_ERROR_MISMATCH unless all ranks train the same tensors by the same method.
  void step() {
    if (dense_) {
      dense_->seal(settings_);
      dense_->allreduce(DRUN_AVG, compression_);
    }
    if (sparse_) {
      sparse_->seal(settings_);
      sparse_->allreduce(DRUN_AVG);
    }
    update_();
    if (partial_) {
      partial_->seal(settings_);
      partial_->average_next();
    }
  }

  // Collective. Afterwards the parameters are the same on all ranks, bit by bit. Does something only with
  // PartialUpdate: call it before the model is tested or saved.
  void synchronise() {
    if (partial_) {
      partial_->seal(settings_);
      partial_->average_all();
    }
  }

  // Number of this rank's values so far that exceeded the range of the half type and were cut.
  std::uint64_t n_cut() const { return dense_ ? dense_->n_cut() : 0; }

 private:
  Update update_;
  std::string settings_;
  Compression compression_ = Compression::none;
  std::unique_ptr<Bucketer> dense_;  // exactly one of these is set
  std::unique_ptr<SparseAllreduce> sparse_;
  std::unique_ptr<PartialAverage> partial_;
};

}  // namespace v0
}  // namespace drun
