// The C functions of drun/gpu.h.
#include "runtime/include/drun/gpu.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "runtime/src/dtype.h"
#include "runtime/src/gpu/allocations.h"
#include "runtime/src/gpu/dots.h"
#include "runtime/src/gpu/kernel_module.h"
#include "runtime/src/gpu/kernels/arguments.h"
#include "runtime/src/last_error.h"

namespace drun::runtime {
namespace {

tl::unexpected<Failure> wrong(const std::string& during, const std::string& what) {
  return failure(DRUN_ERROR_ARGUMENT, during + ": " + what);
}

// Work on the GPU that holds `memory`.
class Work {
 public:
  Work(const char* function, void* stream) : during_(function), stream_(static_cast<gpu::Stream>(stream)) {}

  // Must be called first. `what` names the argument in errors.
  Status begin(const void* memory, const char* what) {
    if (memory == nullptr) return wrong(during_, std::string(what) + " is a null pointer");
    driver_ = gpu::loaded_driver();
    if (driver_ == nullptr || !gpu::is_device_memory(*driver_, memory)) {
      return wrong(during_, std::string(what) + " is not memory of a GPU");
    }
    auto context = gpu::context_of(*driver_, gpu::device_pointer(memory), during_);
    if (!context) return tl::unexpected<Failure>(context.error());
    context_ = *context;
    const auto error = scope_.enter(*driver_, context_);
    if (error != gpu::kSuccess) return failed("cuCtxPushCurrent", error);
    return {};
  }
  Status launch(const std::string& kernel, const void* arguments, std::uint64_t n_parts) {
    auto module = gpu::KernelModule::of(*driver_, context_, during_);
    if (!module) return tl::unexpected<Failure>(module.error());
    return (*module)->launch(kernel, arguments, n_parts, stream_, during_);
  }
  tl::unexpected<Failure> failed(const char* function, gpu::DriverResult error) const {
    return gpu::driver_failure(*driver_, during_, function, error);
  }
  const gpu::Driver& driver() const { return *driver_; }
  gpu::Stream stream() const { return stream_; }
  const std::string& during() const { return during_; }

 private:
  std::string during_;
  gpu::Stream stream_;
  const gpu::Driver* driver_ = nullptr;
  gpu::Context context_ = nullptr;
  gpu::ContextScope scope_;
};

std::uint64_t parts(std::uint64_t n, std::uint64_t of) { return (n + of - 1) / of; }

bool is_index(drun_dtype dtype) { return dtype == DRUN_UINT32 || dtype == DRUN_UINT64; }

Status check_wide(const Work& work, drun_dtype dtype) {
  if (is_wide_float(dtype)) return {};
  return wrong(work.during(), "the elements must be f32 or f64");
}
Status check_index(const Work& work, drun_dtype dtype) {
  if (is_index(dtype)) return {};
  return wrong(work.during(), "indices must be u32 or u64");
}

// Launches the kernel once for every kMaxPieces pieces.
Status over_pieces(Work& work, const std::string& kernel, const drun_gpu_piece* pieces, std::size_t n_pieces,
                   const void* bucket, gpu::PieceArguments arguments) {
  if (pieces == nullptr && n_pieces > 0) return wrong(work.during(), "pieces is a null pointer");
  std::size_t n_elements = 0;
  for (std::size_t i = 0; i < n_pieces; ++i) n_elements += pieces[i].count;
  if (n_elements == 0) return {};
  if (auto ok = work.begin(bucket, "bucket"); !ok) return ok;
  arguments.bucket = gpu::device_pointer(bucket);
  arguments.n_pieces = arguments.n_chunks = 0;
  const auto launch = [&]() -> Status {
    if (arguments.n_pieces == 0) return {};
    auto done = work.launch(kernel, &arguments, arguments.n_chunks);
    arguments.n_pieces = arguments.n_chunks = 0;
    return done;
  };
  std::uint64_t begin = 0;
  for (std::size_t i = 0; i < n_pieces; ++i) {
    const auto [data, count] = pieces[i];
    if (count == 0) continue;
    if (data == nullptr) return wrong(work.during(), "piece " + std::to_string(i) + " is a null pointer");
    arguments.pieces[arguments.n_pieces++] = {gpu::device_pointer(data), count, begin, arguments.n_chunks};
    arguments.n_chunks += gpu::parts_of(count);
    begin += count;
    if (arguments.n_pieces < gpu::kMaxPieces) continue;
    if (auto ok = launch(); !ok) return ok;
  }
  return launch();
}

Status copy_pieces(const char* function, const char* kernel, const drun_gpu_piece* pieces, std::size_t n_pieces,
                   drun_dtype dtype, const void* bucket, void* stream) {
  Work work(function, stream);
  if (!is_dtype(dtype)) return wrong(function, "there is no element type " + std::to_string(dtype));
  return over_pieces(work, kernel + std::to_string(size_of(dtype)), pieces, n_pieces, bucket, {});
}

Status convert_pieces(const char* function, const std::string& kernel, const drun_gpu_piece* pieces,
                      std::size_t n_pieces, drun_dtype dtype, const void* bucket, drun_dtype half,
                      const gpu::PieceArguments& arguments, void* stream) {
  Work work(function, stream);
  if (auto ok = check_wide(work, dtype); !ok) return ok;
  if (!is_half(half)) return wrong(function, "the bucket must be of f16 or bf16");
  return over_pieces(work, kernel + name_of(dtype) + "_" + name_of(half), pieces, n_pieces, bucket, arguments);
}

Status over_elements(Work& work, const std::string& kernel, drun_dtype dtype, const gpu::ElementArguments& arguments) {
  if (arguments.count == 0) return {};
  if (auto ok = work.begin(reinterpret_cast<const void*>(arguments.data), "data"); !ok) return ok;
  return work.launch(kernel + name_of(dtype), &arguments, gpu::parts_of(arguments.count));
}

// The list of the large values has room for an eighth of f32 values, with their places, and for 7.5 % of f64 values.
constexpr std::size_t kListedOf = 8, kPlaceBytes = sizeof(std::uint16_t);
std::size_t list_bytes(std::size_t count) {
  return parts(count, kListedOf) * (sizeof(float) + kPlaceBytes) + alignof(double);
}

gpu::SelectArguments about_selection(const void* values, std::size_t count, drun_dtype dtype, const void* selection) {
  gpu::SelectArguments a{};
  a.values = gpu::device_pointer(values);
  a.count = count;
  a.n_tiles = parts(count, gpu::kTile);
  a.max_listed = list_bytes(count) / (size_of(dtype) + kPlaceBytes);
  a.selection = gpu::device_pointer(selection);
  a.tiles = a.selection + sizeof(gpu::Selection);
  a.list = a.tiles + a.n_tiles * sizeof(gpu::Tile);
  a.places = a.list + a.max_listed * size_of(dtype);
  return a;
}

// Chooses a sample from which a short list with the top K can be made: 1/64 of the values, at least 65536. The sampled
// value of rank sample_rank is below the K-th of all values, with a margin of four standard deviations, for groups
// whose values are all alike.
void plan_sample(gpu::SelectArguments& a) {
  constexpr std::uint64_t kMin = 65'536, kPart = 64;
  const std::uint64_t wanted = std::max(kMin, a.count / kPart / gpu::kSampleGroup * gpu::kSampleGroup);
  a.n_sampled = std::min(a.count, wanted);
  a.sample_rank = a.k;
  if (a.n_sampled == a.count) return;
  const double expected = static_cast<double>(a.k) * static_cast<double>(a.n_sampled) / static_cast<double>(a.count);
  const double deviation = std::sqrt(expected * static_cast<double>(gpu::kSampleGroup));
  a.sample_rank = static_cast<std::uint64_t>(expected + 4 * deviation) + 1;
}

// Launches the kernels of a selection: they list the large values, if that may help; then find the leading digits of
// the k-th largest value, from the highest digit down; then count the chosen values of each tile.
Status find(Work& work, drun_dtype dtype, gpu::SelectArguments a, const void* selection) {
  if (auto ok = check_wide(work, dtype); !ok) return ok;
  if (a.values == 0 && a.count > 0) return wrong(work.during(), "values is a null pointer");
  if (auto ok = work.begin(selection, "selection"); !ok) return ok;
  const std::string type = name_of(dtype);
  if (auto ok = work.launch("drun_begin_selection", &a, 1); !ok) return ok;
  if (a.k > 0) {
    const int n_bits = dtype == DRUN_FLOAT32 ? 31 : 63;  // bits of a magnitude
    const auto check_digit = [&a](int left) {
      a.known = ~std::uint64_t{0} << left;
      a.shift = static_cast<std::uint32_t>(std::max(left - static_cast<int>(gpu::kDigitBits), 0));
    };
    plan_sample(a);
    if (a.k <= a.max_listed && a.sample_rank <= a.n_sampled) {
      check_digit(31);  // samples are f32 for both types
      auto ok = work.launch("drun_guess_pivot_" + type, &a, parts(a.n_sampled, gpu::kThreads));
      if (ok) ok = work.launch("drun_collect_" + type, &a, a.n_tiles);
      if (!ok) return ok;
    }
    for (int left = n_bits; left > 0; left = static_cast<int>(a.shift)) {
      check_digit(left);
      if (auto ok = work.launch("drun_find_digit_" + type, &a, a.n_tiles); !ok) return ok;
    }
  }
  return work.launch("drun_count_tiles_" + type, &a, a.n_tiles);
}

// Computes the Adasum of two vectors into `into` from their known dots, or, if `into` is null, their dots.
Status over_vectors(Work& work, const void* a, const void* b, std::size_t count, drun_dtype dtype, const double* dots,
                    void* into) {
  if (auto ok = check_wide(work, dtype); !ok) return ok;
  if (count > 0 && (a == nullptr || b == nullptr)) return wrong(work.during(), "a or b is a null pointer");
  if (auto ok = work.begin(dots, "dots"); !ok) return ok;
  const auto launch = [&](const std::string& kernel, const void* arguments, std::uint64_t n_parts) {
    return work.launch(kernel, arguments, n_parts);
  };
  const auto arguments =
      gpu::dots_arguments(gpu::device_pointer(a), gpu::device_pointer(b), count, gpu::device_pointer(dots));
  return into == nullptr ? gpu::launch_dots(arguments, dtype, launch)
                         : gpu::launch_adasum(arguments, gpu::device_pointer(into), dtype, launch);
}

// Leaves *memory unchanged on failure and for 0 bytes.
Status allocate(void** memory, std::size_t n_bytes, bool on_device) {
  if (n_bytes == 0) return {};
  auto made = gpu::allocations().take(n_bytes, on_device);
  if (!made) return tl::unexpected<Failure>(made.error());
  *memory = *made;
  return {};
}

Status over_indices(const char* function, const char* kernel, drun_dtype dtype, drun_dtype index_dtype,
                    const gpu::ScatterArguments& a, void* stream) {
  Work work(function, stream);
  if (auto ok = check_wide(work, dtype); !ok) return ok;
  if (auto ok = check_index(work, index_dtype); !ok) return ok;
  if (a.n == 0) return {};
  if (auto ok = work.begin(reinterpret_cast<const void*>(a.data), "data"); !ok) return ok;
  if (a.indices == 0 || a.n_bad == 0) return wrong(function, "indices or n_bad is a null pointer");
  return work.launch(std::string(kernel) + name_of(dtype) + "_" + name_of(index_dtype), &a, parts(a.n, gpu::kThreads));
}

}  // namespace
}  // namespace drun::runtime

using drun::runtime::caught;
using drun::runtime::failure;
using drun::runtime::Status;
using drun::runtime::Work;
namespace gpu = drun::runtime::gpu;

extern "C" {

drun_memory drun_memory_kind(const void* memory) {
  const gpu::Driver* const driver = gpu::loaded_driver();
  return driver != nullptr && gpu::is_device_memory(*driver, memory) ? DRUN_MEMORY_DEVICE : DRUN_MEMORY_HOST;
}

int drun_memory_gpu(const void* memory) {
  int ordinal = -1;
  const gpu::Driver* const driver = gpu::loaded_driver();
  if (driver == nullptr || !gpu::is_device_memory(*driver, memory)) return -1;
  const auto error =
      driver->pointer_get_attribute(&ordinal, gpu::PointerAttribute::kDeviceOrdinal, gpu::device_pointer(memory));
  return error == gpu::kSuccess ? ordinal : -1;
}

int drun_alloc_like(void** memory, size_t n_bytes, const void* like) {
  return caught([&]() -> Status {
    if (memory == nullptr) return failure(DRUN_ERROR_ARGUMENT, "drun_alloc_like: memory is a null pointer");
    *memory = nullptr;
    Work work("drun_alloc_like", nullptr);
    const bool on_device = drun_memory_kind(like) == DRUN_MEMORY_DEVICE;
    if (on_device) {
      if (auto ok = work.begin(like, "like"); !ok) return ok;  // its context is current until we return
    }
    return drun::runtime::allocate(memory, n_bytes, on_device);
  });
}

int drun_alloc(void** memory, size_t n_bytes, drun_memory kind) {
  return caught([&]() -> Status {
    if (memory == nullptr) return failure(DRUN_ERROR_ARGUMENT, "drun_alloc: memory is a null pointer");
    *memory = nullptr;
    if (kind != DRUN_MEMORY_HOST && kind != DRUN_MEMORY_DEVICE) {
      return failure(DRUN_ERROR_ARGUMENT, "drun_alloc: the kind must be DRUN_MEMORY_HOST or DRUN_MEMORY_DEVICE");
    }
    return drun::runtime::allocate(memory, n_bytes, kind == DRUN_MEMORY_DEVICE);
  });
}

int drun_gpu_copy(void* to, const void* from, size_t n_bytes, void* stream) {
  return caught([&]() -> Status {
    Work work("drun_gpu_copy", stream);
    if (n_bytes == 0) return {};
    if (auto ok = work.begin(to, "to"); !ok) return ok;
    const auto error =
        work.driver().copy_on_device(gpu::device_pointer(to), gpu::device_pointer(from), n_bytes, work.stream());
    if (error != gpu::kSuccess) return work.failed("cuMemcpyDtoDAsync", error);
    return {};
  });
}

int drun_gpu_clear(void* memory, size_t n_bytes, void* stream) {
  return caught([&]() -> Status {
    Work work("drun_gpu_clear", stream);
    if (n_bytes == 0) return {};
    if (auto ok = work.begin(memory, "memory"); !ok) return ok;
    const auto error = work.driver().set_bytes(gpu::device_pointer(memory), 0, n_bytes, work.stream());
    if (error != gpu::kSuccess) return work.failed("cuMemsetD8Async", error);
    return {};
  });
}

int drun_gpu_read(void* host, const void* memory, size_t n_bytes, void* stream) {
  return caught([&]() -> Status {
    Work work("drun_gpu_read", stream);
    if (n_bytes == 0) return {};
    if (host == nullptr) return failure(DRUN_ERROR_ARGUMENT, "drun_gpu_read: host is a null pointer");
    if (auto ok = work.begin(memory, "memory"); !ok) return ok;
    auto error = work.driver().copy_to_host(host, gpu::device_pointer(memory), n_bytes, work.stream());
    if (error != gpu::kSuccess) return work.failed("cuMemcpyDtoHAsync", error);
    error = work.driver().stream_synchronize(work.stream());
    if (error != gpu::kSuccess) return work.failed("cuStreamSynchronize", error);
    return {};
  });
}

int drun_gpu_pack(const drun_gpu_piece* pieces, size_t n_pieces, drun_dtype dtype, void* bucket, void* stream) {
  return caught([&] {
    return drun::runtime::copy_pieces("drun_gpu_pack", "drun_pack_", pieces, n_pieces, dtype, bucket, stream);
  });
}

int drun_gpu_unpack(const void* bucket, const drun_gpu_piece* pieces, size_t n_pieces, drun_dtype dtype, void* stream) {
  return caught([&] {
    return drun::runtime::copy_pieces("drun_gpu_unpack", "drun_unpack_", pieces, n_pieces, dtype, bucket, stream);
  });
}

int drun_gpu_narrow(const drun_gpu_piece* pieces, size_t n_pieces, drun_dtype dtype, double divisor, double limit,
                    void* bucket, drun_dtype half, uint64_t* n_cut, void* stream) {
  return caught([&]() -> Status {
    if (n_cut == nullptr) return failure(DRUN_ERROR_ARGUMENT, "drun_gpu_narrow: n_cut is a null pointer");
    gpu::PieceArguments arguments{};
    arguments.factor = divisor;
    arguments.limit = limit;
    arguments.n_cut = gpu::device_pointer(n_cut);
    return drun::runtime::convert_pieces("drun_gpu_narrow", "drun_narrow_", pieces, n_pieces, dtype, bucket, half,
                                         arguments, stream);
  });
}

int drun_gpu_widen(const void* bucket, drun_dtype half, double factor, const drun_gpu_piece* pieces, size_t n_pieces,
                   drun_dtype dtype, void* stream) {
  return caught([&] {
    gpu::PieceArguments arguments{};
    arguments.factor = factor;
    return drun::runtime::convert_pieces("drun_gpu_widen", "drun_widen_", pieces, n_pieces, dtype, bucket, half,
                                         arguments, stream);
  });
}

int drun_gpu_scale(void* data, size_t count, drun_dtype dtype, double factor, void* stream) {
  return caught([&]() -> Status {
    Work work("drun_gpu_scale", stream);
    if (!drun::runtime::is_float(dtype)) {
      return failure(DRUN_ERROR_ARGUMENT, "drun_gpu_scale: the elements must be of a floating type");
    }
    return over_elements(work, "drun_scale_", dtype, {gpu::device_pointer(data), 0, count, factor});
  });
}

int drun_gpu_divide(void* data, size_t count, drun_dtype dtype, double divisor, void* stream) {
  return caught([&]() -> Status {
    Work work("drun_gpu_divide", stream);
    if (auto ok = check_wide(work, dtype); !ok) return ok;
    return over_elements(work, "drun_divide_", dtype, {gpu::device_pointer(data), 0, count, divisor});
  });
}

int drun_gpu_add(void* data, const void* other, size_t count, drun_dtype dtype, void* stream) {
  return caught([&]() -> Status {
    Work work("drun_gpu_add", stream);
    if (auto ok = check_wide(work, dtype); !ok) return ok;
    if (other == nullptr && count > 0) return failure(DRUN_ERROR_ARGUMENT, "drun_gpu_add: other is a null pointer");
    return over_elements(work, "drun_add_", dtype, {gpu::device_pointer(data), gpu::device_pointer(other), count, 0});
  });
}

size_t drun_gpu_selection_bytes(size_t count) {
  return sizeof(gpu::Selection) + drun::runtime::parts(count, gpu::kTile) * sizeof(gpu::Tile) +
         drun::runtime::list_bytes(count);
}

int drun_gpu_find_top_k(const void* values, size_t count, drun_dtype dtype, size_t k, void* selection, void* stream) {
  return caught([&] {
    Work work("drun_gpu_find_top_k", stream);
    auto arguments = drun::runtime::about_selection(values, count, dtype, selection);
    arguments.choice = gpu::Choice::kTopK;
    arguments.k = k < count ? k : count;
    return find(work, dtype, arguments, selection);
  });
}

int drun_gpu_find_threshold(const void* values, size_t count, drun_dtype dtype, double threshold, void* selection,
                            void* stream) {
  return caught([&] {
    Work work("drun_gpu_find_threshold", stream);
    auto arguments = drun::runtime::about_selection(values, count, dtype, selection);
    arguments.choice = gpu::Choice::kThreshold;
    arguments.threshold = threshold;
    return find(work, dtype, arguments, selection);
  });
}

int drun_gpu_take(const void* values, size_t count, drun_dtype dtype, const void* selection, void* indices,
                  drun_dtype index_dtype, void* chosen, void* stream) {
  return caught([&]() -> Status {
    Work work("drun_gpu_take", stream);
    if (auto ok = check_wide(work, dtype); !ok) return ok;
    if (auto ok = check_index(work, index_dtype); !ok) return ok;
    if (index_dtype == DRUN_UINT32 && count > (uint64_t{1} << 32)) {
      return failure(DRUN_ERROR_ARGUMENT, "drun_gpu_take: so many values need indices of u64");
    }
    if (count == 0) return {};
    if (values == nullptr || indices == nullptr || chosen == nullptr) {
      return failure(DRUN_ERROR_ARGUMENT, "drun_gpu_take: values, indices or chosen is a null pointer");
    }
    auto arguments = drun::runtime::about_selection(values, count, dtype, selection);
    arguments.indices = gpu::device_pointer(indices);
    arguments.out = gpu::device_pointer(chosen);
    if (auto ok = work.begin(selection, "selection"); !ok) return ok;
    return work.launch(
        std::string("drun_take_") + drun::runtime::name_of(dtype) + "_" + drun::runtime::name_of(index_dtype),
        &arguments, arguments.n_tiles);
  });
}

int drun_gpu_scatter_add(void* data, size_t count, drun_dtype dtype, const void* indices, drun_dtype index_dtype,
                         const void* values, size_t n, uint64_t* n_bad, void* stream) {
  return caught([&]() -> Status {
    if (values == nullptr && n > 0)
      return failure(DRUN_ERROR_ARGUMENT, "drun_gpu_scatter_add: values is a null pointer");
    return drun::runtime::over_indices("drun_gpu_scatter_add", "drun_scatter_add_", dtype, index_dtype,
                                       {gpu::device_pointer(data), count, gpu::device_pointer(indices),
                                        gpu::device_pointer(values), n, gpu::device_pointer(n_bad)},
                                       stream);
  });
}

int drun_gpu_scatter_zero(void* data, size_t count, drun_dtype dtype, const void* indices, drun_dtype index_dtype,
                          size_t n, uint64_t* n_bad, void* stream) {
  return caught([&] {
    return drun::runtime::over_indices(
        "drun_gpu_scatter_zero", "drun_scatter_zero_", dtype, index_dtype,
        {gpu::device_pointer(data), count, gpu::device_pointer(indices), 0, n, gpu::device_pointer(n_bad)}, stream);
  });
}

size_t drun_gpu_dots_bytes(size_t count) { return gpu::dots_bytes(count); }

int drun_gpu_dots(const void* a, const void* b, size_t count, drun_dtype dtype, double* dots, void* stream) {
  return caught([&] {
    Work work("drun_gpu_dots", stream);
    return drun::runtime::over_vectors(work, a, b, count, dtype, dots, nullptr);
  });
}

int drun_gpu_adasum(const void* a, const void* b, size_t count, drun_dtype dtype, const double* dots, void* into,
                    void* stream) {
  return caught([&]() -> Status {
    Work work("drun_gpu_adasum", stream);
    if (count == 0) return {};
    if (into == nullptr) return failure(DRUN_ERROR_ARGUMENT, "drun_gpu_adasum: into is a null pointer");
    return drun::runtime::over_vectors(work, a, b, count, dtype, dots, into);
  });
}

}  // extern "C"
