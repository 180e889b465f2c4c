// The C functions of drun/gpu.h.
#include "runtime/include/drun/gpu.h"

#include <algorithm>
#include <string>

#include "runtime/src/dtype.h"
#include "runtime/src/gpu/allocations.h"
#include "runtime/src/gpu/device.h"
#include "runtime/src/gpu/dots.h"
#include "runtime/src/gpu/kernels/arguments.h"
#include "runtime/src/gpu/selection.h"
#include "runtime/src/gpu/work.h"
#include "runtime/src/last_error.h"

namespace drun::runtime {
namespace {

bool is_index(drun_dtype dtype) { return dtype == DRUN_UINT32 || dtype == DRUN_UINT64; }

Status check_index(const gpu::Work& work, drun_dtype dtype) {
  if (is_index(dtype)) return {};
  return gpu::wrong_argument(work.during(), "indices must be u32 or u64");
}

// Launches the kernel once for every kMaxPieces pieces.
Status over_pieces(gpu::Work& work, const std::string& kernel, const drun_gpu_piece* pieces, std::size_t n_pieces,
                   const void* bucket, gpu::PieceArguments arguments) {
  if (pieces == nullptr && n_pieces > 0) return gpu::wrong_argument(work.during(), "pieces is a null pointer");
  std::size_t n_elements = 0;
  for (std::size_t i = 0; i < n_pieces; ++i) n_elements += pieces[i].count;
  if (n_elements == 0) return {};
  if (auto ok = work.begin(bucket, "bucket"); !ok) return ok;
  arguments.bucket = gpu::device_pointer(bucket);
  arguments.n_pieces = arguments.n_chunks = 0;
  const auto launch = [&]() -> Status {
    if (arguments.n_pieces == 0) return {};
    auto done = work.launch(kernel, &arguments, std::max<std::uint64_t>(arguments.n_chunks, 1));
    arguments.n_pieces = arguments.n_chunks = 0;
    return done;
  };
  std::uint64_t begin = 0;
  for (std::size_t i = 0; i < n_pieces; ++i) {
    const auto [data, count] = pieces[i];
    if (count == 0) continue;
    arguments.pieces[arguments.n_pieces++] = {gpu::device_pointer(data), count, begin, arguments.n_chunks};
    if (data != nullptr) arguments.n_chunks += gpu::parts_of(count);
    begin += count;
    if (arguments.n_pieces < gpu::kMaxPieces) continue;
    if (auto ok = launch(); !ok) return ok;
  }
  return launch();
}

// One copy of the driver for each piece. The work must have begun.
Status copy_one_by_one(const gpu::Work& work, const drun_gpu_piece* pieces, std::size_t n_pieces, drun_dtype dtype,
                       gpu::DevicePointer bucket, bool into_bucket) {
  for (std::size_t i = 0; i < n_pieces; ++i) {
    const std::size_t n_bytes = pieces[i].count * size_of(dtype);
    const auto place = bucket, piece = gpu::device_pointer(pieces[i].data);
    bucket += n_bytes;
    if (n_bytes == 0 || (piece == 0 && !into_bucket)) continue;
    const auto error = piece == 0    ? work.driver().set_bytes(place, 0, n_bytes, work.stream())
                       : into_bucket ? work.driver().copy_on_device(place, piece, n_bytes, work.stream())
                                     : work.driver().copy_on_device(piece, place, n_bytes, work.stream());
    if (error != gpu::kSuccess) return work.failed(piece == 0 ? "cuMemsetD8Async" : "cuMemcpyDtoDAsync", error);
  }
  return {};
}

// By one kernel, or without kernels, on a GPU or with a driver that they are not for, by copies.
Status copy_pieces(const char* function, const char* kernel, const drun_gpu_piece* pieces, std::size_t n_pieces,
                   drun_dtype dtype, const void* bucket, void* stream, bool into_bucket) {
  gpu::Work work(function, stream);
  if (!is_dtype(dtype)) return gpu::wrong_argument(function, "there is no element type " + std::to_string(dtype));
  auto done = over_pieces(work, kernel + std::to_string(size_of(dtype)), pieces, n_pieces, bucket, {});
  if (done || done.error().status != DRUN_ERROR_UNSUPPORTED) return done;
  return copy_one_by_one(work, pieces, n_pieces, dtype, gpu::device_pointer(bucket), into_bucket);
}

Status convert_pieces(const char* function, const std::string& kernel, const drun_gpu_piece* pieces,
                      std::size_t n_pieces, drun_dtype dtype, const void* bucket, drun_dtype half,
                      const gpu::PieceArguments& arguments, void* stream) {
  gpu::Work work(function, stream);
  if (auto ok = check_wide(work, dtype); !ok) return ok;
  if (!is_half(half)) return gpu::wrong_argument(function, "the bucket must be of f16 or bf16");
  return over_pieces(work, kernel + name_of(dtype) + "_" + name_of(half), pieces, n_pieces, bucket, arguments);
}

Status over_elements(gpu::Work& work, const std::string& kernel, drun_dtype dtype,
                     const gpu::ElementArguments& arguments) {
  if (arguments.count == 0) return {};
  if (auto ok = work.begin(reinterpret_cast<const void*>(arguments.data), "data"); !ok) return ok;
  return work.launch(kernel + name_of(dtype), &arguments, gpu::parts_of(arguments.count));
}

// Computes the Adasum of two vectors into `into` from their known dots, or, if `into` is null, their dots.
Status over_vectors(gpu::Work& work, const void* a, const void* b, std::size_t count, drun_dtype dtype,
                    const double* dots, void* into) {
  if (auto ok = check_wide(work, dtype); !ok) return ok;
  if (count > 0 && (a == nullptr || b == nullptr))
    return gpu::wrong_argument(work.during(), "a or b is a null pointer");
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
  gpu::Work work(function, stream);
  if (auto ok = check_wide(work, dtype); !ok) return ok;
  if (auto ok = check_index(work, index_dtype); !ok) return ok;
  if (a.n == 0) return {};
  if (auto ok = work.begin(reinterpret_cast<const void*>(a.data), "data"); !ok) return ok;
  if (a.indices == 0 || a.n_bad == 0) return gpu::wrong_argument(function, "indices or n_bad is a null pointer");
  return work.launch(std::string(kernel) + name_of(dtype) + "_" + name_of(index_dtype), &a,
                     gpu::parts(a.n, gpu::kThreads));
}

}  // namespace
}  // namespace drun::runtime

using drun::runtime::caught;
using drun::runtime::check_index;
using drun::runtime::failure;
using drun::runtime::over_elements;
using drun::runtime::Status;
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
    gpu::Work work("drun_alloc_like", nullptr);
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
    gpu::Work work("drun_gpu_copy", stream);
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
    gpu::Work work("drun_gpu_clear", stream);
    if (n_bytes == 0) return {};
    if (auto ok = work.begin(memory, "memory"); !ok) return ok;
    const auto error = work.driver().set_bytes(gpu::device_pointer(memory), 0, n_bytes, work.stream());
    if (error != gpu::kSuccess) return work.failed("cuMemsetD8Async", error);
    return {};
  });
}

int drun_gpu_read(void* host, const void* memory, size_t n_bytes, void* stream) {
  return caught([&]() -> Status {
    gpu::Work work("drun_gpu_read", stream);
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
    return drun::runtime::copy_pieces("drun_gpu_pack", "drun_pack_", pieces, n_pieces, dtype, bucket, stream, true);
  });
}

int drun_gpu_unpack(const void* bucket, const drun_gpu_piece* pieces, size_t n_pieces, drun_dtype dtype, void* stream) {
  return caught([&] {
    return drun::runtime::copy_pieces("drun_gpu_unpack", "drun_unpack_", pieces, n_pieces, dtype, bucket, stream,
                                      false);
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
    gpu::Work work("drun_gpu_scale", stream);
    if (!drun::runtime::is_float(dtype)) {
      return failure(DRUN_ERROR_ARGUMENT, "drun_gpu_scale: the elements must be of a floating type");
    }
    return over_elements(work, "drun_scale_", dtype, {gpu::device_pointer(data), 0, count, factor});
  });
}

int drun_gpu_divide(void* data, size_t count, drun_dtype dtype, double divisor, void* stream) {
  return caught([&]() -> Status {
    gpu::Work work("drun_gpu_divide", stream);
    if (auto ok = check_wide(work, dtype); !ok) return ok;
    return over_elements(work, "drun_divide_", dtype, {gpu::device_pointer(data), 0, count, divisor});
  });
}

int drun_gpu_add(void* data, const void* other, size_t count, drun_dtype dtype, void* stream) {
  return caught([&]() -> Status {
    gpu::Work work("drun_gpu_add", stream);
    if (auto ok = check_wide(work, dtype); !ok) return ok;
    if (other == nullptr && count > 0) return failure(DRUN_ERROR_ARGUMENT, "drun_gpu_add: other is a null pointer");
    return over_elements(work, "drun_add_", dtype, {gpu::device_pointer(data), gpu::device_pointer(other), count, 0});
  });
}

size_t drun_gpu_selection_bytes(size_t count) { return gpu::selection_bytes(count); }

int drun_gpu_find_top_k(const void* values, size_t count, drun_dtype dtype, size_t k, void* selection, void* stream) {
  return caught([&] {
    gpu::Work work("drun_gpu_find_top_k", stream);
    auto arguments = gpu::about_selection(values, count, dtype, selection);
    arguments.choice = gpu::Choice::kTopK;
    arguments.k = k < count ? k : count;
    return gpu::find_selection(work, dtype, arguments, selection);
  });
}

int drun_gpu_find_threshold(const void* values, size_t count, drun_dtype dtype, double threshold, void* selection,
                            void* stream) {
  return caught([&] {
    gpu::Work work("drun_gpu_find_threshold", stream);
    auto arguments = gpu::about_selection(values, count, dtype, selection);
    arguments.choice = gpu::Choice::kThreshold;
    arguments.threshold = threshold;
    return gpu::find_selection(work, dtype, arguments, selection);
  });
}

int drun_gpu_take(const void* values, size_t count, drun_dtype dtype, const void* selection, void* indices,
                  drun_dtype index_dtype, void* chosen, void* stream) {
  return caught([&]() -> Status {
    gpu::Work work("drun_gpu_take", stream);
    if (auto ok = check_wide(work, dtype); !ok) return ok;
    if (auto ok = check_index(work, index_dtype); !ok) return ok;
    if (index_dtype == DRUN_UINT32 && count > (uint64_t{1} << 32)) {
      return failure(DRUN_ERROR_ARGUMENT, "drun_gpu_take: so many values need indices of u64");
    }
    if (count == 0) return {};
    if (values == nullptr || indices == nullptr || chosen == nullptr) {
      return failure(DRUN_ERROR_ARGUMENT, "drun_gpu_take: values, indices or chosen is a null pointer");
    }
    auto arguments = gpu::about_selection(values, count, dtype, selection);
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
    gpu::Work work("drun_gpu_dots", stream);
    return drun::runtime::over_vectors(work, a, b, count, dtype, dots, nullptr);
  });
}

int drun_gpu_adasum(const void* a, const void* b, size_t count, drun_dtype dtype, const double* dots, void* into,
                    void* stream) {
  return caught([&]() -> Status {
    gpu::Work work("drun_gpu_adasum", stream);
    if (count == 0) return {};
    if (into == nullptr) return failure(DRUN_ERROR_ARGUMENT, "drun_gpu_adasum: into is a null pointer");
    return drun::runtime::over_vectors(work, a, b, count, dtype, dots, into);
  });
}

}  // extern "C"
