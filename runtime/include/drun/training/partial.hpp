// Replicas whose parameters are averaged one part at a time.
#pragma once

#include <cstddef>
#include <string>
#include <type_traits>
#include <vector>

#include "drun/training/bucketer.hpp"

namespace drun {
inline namespace v0 {

// Every rank applies its own gradients; after each step, one of this number of parts of the parameters is averaged.
struct PartialUpdate {
  std::size_t parts = 4;
};

// The parts have the same size, whatever the tensors are, and take turns. One thread at a time. The transport and the
// tensors' memory must outlive it. Methods throw Error.
class PartialAverage {
 public:
  explicit PartialAverage(PartialUpdate update, Transport& transport = world(), std::size_t bucket_bytes = kBucketBytes)
      : n_parts_(update.parts), transport_(transport), bucket_bytes_(bucket_bytes) {
    if (n_parts_ == 0) training::refuse("partial: there must be at least one part");
  }

  // Registers `count` parameters; all ranks add the same ones in the same order, before the first call below.
  template <typename T>
  void add(const std::string& name, T* data, std::size_t count) {
    static_assert(std::is_floating_point_v<T>);
    tensors_.add(name, data, count, dtype_of<T>());
  }

  // Collective; see Bucketer::seal. The calls below make it.
  void seal(const std::string& settings = "") {
    const std::string own = "partial=" + std::to_string(n_parts_);
    tensors_.seal(transport_, training::settings_in_words(settings.empty() ? own : settings, bucket_bytes_));
  }

  // Collective. Averages the part whose turn it is, in place.
  void average_next() {
    seal();
    average(training::part(tensors_, turn_, n_parts_));
    turn_ = (turn_ + 1) % n_parts_;
  }

  // Collective. Averages all parameters in place: they are then the same bits on all ranks, until a rank changes one.
  // Needed before a model is tested or saved. Does not change whose turn it is.
  void average_all() {
    seal();
    average(training::whole(tensors_));
  }

 private:
  void average(const std::vector<training::Piece>& pieces) {
    for (const auto& bucket : training::lay_out(tensors_, pieces, bucket_bytes_)) {
      reducer_.reduce(transport_, tensors_, bucket, DRUN_AVG, Compression::none);
    }
  }

  std::size_t n_parts_;
  Transport& transport_;
  std::size_t bucket_bytes_;
  std::size_t turn_ = 0;
  training::TensorList tensors_;
  training::BucketReducer reducer_;
};

}  // namespace v0
}  // namespace drun
