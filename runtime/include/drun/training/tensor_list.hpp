// The tensors that a program registers once, in the same order on every rank.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "drun/gpu.h"
#include "drun/training/agreement.hpp"

namespace drun {
inline namespace v0 {
namespace training {

// Bytes of an element; 0: there is no such type.
inline std::size_t size_of(drun_dtype dtype) {
  static constexpr std::size_t kSizes[] = {1, 1, 4, 4, 8, 8, 2, 2, 4, 8};
  return dtype >= DRUN_INT8 && dtype <= DRUN_FLOAT64 ? kSizes[dtype] : 0;
}

inline const char* name_of(drun_dtype dtype) {
  static constexpr const char* kNames[] = {"i8", "u8", "i32", "u32", "i64", "u64", "f16", "bf16", "f32", "f64"};
  return dtype >= DRUN_INT8 && dtype <= DRUN_FLOAT64 ? kNames[dtype] : "?";
}

[[noreturn]] inline void refuse(const std::string& why, int code = DRUN_ERROR_ARGUMENT) {
  throw Error(code, why.c_str(), -1, "");
}

// A registered tensor. The memory belongs to the program and must not move.
struct Tensor {
  std::string name;
  void* data;
  std::size_t count;
  drun_dtype dtype;

  char* at(std::size_t i) const { return static_cast<char*>(data) + i * size_of(dtype); }
};

class TensorList {
 public:
  // Throws DRUN_ERROR_ARGUMENT for an invalid tensor, a name that was used before, or tensors in different memory;
  // DRUN_ERROR_STATE once sealed.
  void add(const std::string& name, void* data, std::size_t count, drun_dtype dtype) {
    const std::string subject = "tensor '" + name + "': ";
    if (is_sealed_) refuse(subject + "it comes too late: the first step has been made", DRUN_ERROR_STATE);
    if (size_of(dtype) == 0) refuse(subject + "there is no element type " + std::to_string(dtype));
    if (name.find('\0') != std::string::npos) refuse("a tensor's name has a NUL");
    if (count > std::numeric_limits<std::size_t>::max() / 2 / size_of(dtype)) {
      refuse(subject + "a count of " + std::to_string(count) + " is too large");
    }
    if (data == nullptr && count > 0) refuse(subject + "a null pointer");
    if (count > 0) {
      const int own = drun_memory_gpu(data), first = gpu_.value_or(own);
      if ((own < 0) != (first < 0)) {
        refuse(subject + "some tensors are in memory of a GPU, and some in that of the host");
      }
      if (own != first) {
        refuse(subject + "it is on GPU " + std::to_string(own) + ", and others are on GPU " + std::to_string(first));
      }
      gpu_ = own;
    }
    if (!names_.insert(name).second) refuse(subject + "the name was registered before");
    tensors_.push_back({name, data, count, dtype});
  }

  // Collective. Throws DRUN_ERROR_MISMATCH unless all ranks have the same list and settings. Further calls do nothing.
  void seal(Transport& transport, const std::string& settings) {
    if (is_sealed_) return;
    Registered own{settings, {}};
    for (const auto& tensor : tensors_) {
      own.tensors.push_back("'" + tensor.name + "' of " + std::to_string(tensor.count) + " " + name_of(tensor.dtype));
    }
    agree(transport, own);
    is_sealed_ = true;
  }
  bool is_sealed() const { return is_sealed_; }
  // Kind of memory of all tensors. DRUN_MEMORY_AUTO: they have no elements.
  drun_memory memory() const {
    if (!gpu_) return DRUN_MEMORY_AUTO;
    return *gpu_ < 0 ? DRUN_MEMORY_HOST : DRUN_MEMORY_DEVICE;
  }

  std::size_t size() const { return tensors_.size(); }
  const Tensor& operator[](std::size_t i) const { return tensors_[i]; }

 private:
  std::vector<Tensor> tensors_;
  std::set<std::string> names_;
  std::optional<int> gpu_;  // GPU of the tensors with elements; -1: memory of the host
  bool is_sealed_ = false;
};

}  // namespace training
}  // namespace v0
}  // namespace drun
