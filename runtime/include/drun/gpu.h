/* What training does with memory of a GPU: the kernels behind drun/training.hpp, for programs that do it their own way.
 * C99, C ABI; still to change until drun 1.0.
 *
 * All memory is of one GPU, if nothing else is said. The work goes to `stream`, a CUstream or cudaStream_t (NULL: the
 * legacy default stream), in its order; the functions return when it is enqueued, and can be captured in a CUDA graph
 * once each has been called before with the same element types. Memory stays the program's until the work is over. No
 * drun_init is needed. They return DRUN_OK, DRUN_ERROR_ARGUMENT, DRUN_ERROR_SYSTEM with what the driver says, or
 * DRUN_ERROR_UNSUPPORTED: this build of libdrun has no kernels, or none for that GPU, or there is no driver. Every
 * kernel gives the bits that drun/training.hpp gives on the host, but for those of a NaN. The page docs/gpu.md says
 * more. */
#ifndef DRUN_GPU_H
#define DRUN_GPU_H

#include "drun/drun.h"

#ifdef __cplusplus
extern "C" {
#endif

/* DRUN_MEMORY_DEVICE: the processor can't touch it. Else DRUN_MEMORY_HOST: also what the driver manages, or has pinned.
 */
DRUN_API drun_memory drun_memory_kind(const void* memory);

/* Which GPU it is of, as CUDA counts them for this process; -1: memory of the host. */
DRUN_API int drun_memory_gpu(const void* memory);

/* Memory that collectives are quick on, aligned to 256 bytes at least. DRUN_MEMORY_DEVICE: of the GPU whose context is
 * current (cudaSetDevice, and some call of CUDA's), from 4 MiB on of NCCL's allocator where there is one, which may
 * round up by megabytes. DRUN_MEMORY_HOST: pinned, if there is a driver and a context is current. 0 bytes: NULL is
 * stored. DRUN_ERROR_STATE: no context is current; DRUN_ERROR_UNSUPPORTED: the process has loaded no driver. */
DRUN_API int drun_alloc(void** memory, size_t n_bytes, drun_memory kind);
/* Of the kind, and of the GPU, of `like`, whatever is current. */
DRUN_API int drun_alloc_like(void** memory, size_t n_bytes, const void* like);
/* Of drun_alloc or drun_alloc_like. What was enqueued with it must be over. NULL is fine. */
DRUN_API int drun_free(void* memory);

/* Collective on `comm`: NCCL may use these bytes of each member in place, where the links between the GPUs allow it,
 * which saves its copies. Then it asks that the buffers of a call, those that send and those that receive, are in such
 * memory on all members, at the same distance from its beginning. For memory of NCCL's allocator, which drun_alloc
 * gives from 4 MiB on, or mapped as that is (cuMemMap). Until drun_free or drun_deregister, or the communicator's end;
 * what is enqueued must be over by then, and a CUDA graph with such a call must not be launched any more. DRUN_OK also
 * where it has no effect: NCCL is not used; one member can't do it (a warning says so); the memory is the host's, or
 * cuMemAlloc's, on all members; or some member has no GPU (who need not call). DRUN_ERROR_MISMATCH: some give memory of
 * a GPU and others not. Never asynchronous, nor part of a group. */
DRUN_API int drun_register(void* memory, size_t n_bytes, drun_comm comm, const drun_call_options* options);
/* Of all communicators, what was registered at this address, if anything was; before memory that is not drun_alloc's is
 * freed. Each rank for itself, but NCCL asks that all do it before their next call with this memory. As drun_free of
 * memory that is registered it comes after the calls that were made before, and may wait for other ranks' NCCL.
 * DRUN_ERROR_SYSTEM: what NCCL says. */
DRUN_API int drun_deregister(void* memory);

DRUN_API int drun_gpu_copy(void* to, const void* from, size_t n_bytes, void* stream);
DRUN_API int drun_gpu_clear(void* memory, size_t n_bytes, void* stream); /* to bytes of 0 */
/* To memory of the host; waits for the stream. */
DRUN_API int drun_gpu_read(void* host, const void* memory, size_t n_bytes, void* stream);

/* `count` elements. The array of pieces is the host's, and read before the functions return. */
typedef struct drun_gpu_piece {
  void* data;
  size_t count;
} drun_gpu_piece;

/* Pieces of one element type, one behind the other in `bucket`; and back. */
DRUN_API int drun_gpu_pack(const drun_gpu_piece* pieces, size_t n_pieces, drun_dtype dtype, void* bucket, void* stream);
DRUN_API int drun_gpu_unpack(const void* bucket, const drun_gpu_piece* pieces, size_t n_pieces, drun_dtype dtype,
                             void* stream);
/* Pieces of f32 or f64 to halves (DRUN_FLOAT16, DRUN_BFLOAT16), each element divided by `divisor`. What is finite and
 * above `limit` then is cut down to it, with its sign; how many, is added to *n_cut, which is the GPU's, too. */
DRUN_API int drun_gpu_narrow(const drun_gpu_piece* pieces, size_t n_pieces, drun_dtype dtype, double divisor,
                             double limit, void* bucket, drun_dtype half, uint64_t* n_cut, void* stream);
/* And back, each element multiplied by `factor`. */
DRUN_API int drun_gpu_widen(const void* bucket, drun_dtype half, double factor, const drun_gpu_piece* pieces,
                            size_t n_pieces, drun_dtype dtype, void* stream);

/* In place. Floating types; drun_gpu_divide and drun_gpu_add: f32 and f64. */
DRUN_API int drun_gpu_scale(void* data, size_t count, drun_dtype dtype, double factor, void* stream);
DRUN_API int drun_gpu_divide(void* data, size_t count, drun_dtype dtype, double divisor, void* stream);
DRUN_API int drun_gpu_add(void* data, const void* other, size_t count, drun_dtype dtype, void* stream);

/* Which of `count` values, f32 or f64, are worth sending. What is found is kept in `selection`, of so many bytes and
 * aligned to 8, whose first 8 bytes are the number of those that are chosen, a uint64_t. Threshold: all of at least
 * that absolute value, and NaN. Top K: the `k` of the largest absolute values, all NaN as the largest, of equal ones
 * those that come first; all, if there are not so many. */
DRUN_API size_t drun_gpu_selection_bytes(size_t count);
DRUN_API int drun_gpu_find_top_k(const void* values, size_t count, drun_dtype dtype, size_t k, void* selection,
                                 void* stream);
DRUN_API int drun_gpu_find_threshold(const void* values, size_t count, drun_dtype dtype, double threshold,
                                     void* selection, void* stream);
/* The chosen ones, in their order, with their indices (DRUN_UINT32, below 2^32 values; or DRUN_UINT64). `values` and
 * `count` are those that the selection was made of, unchanged. */
DRUN_API int drun_gpu_take(const void* values, size_t count, drun_dtype dtype, const void* selection, void* indices,
                           drun_dtype index_dtype, void* chosen, void* stream);
/* data[indices[i]] += values[i], or = 0, for the `n` indices, which differ from each other. Those of `count` or more
 * are left out, and counted in *n_bad, which is the GPU's. */
DRUN_API int drun_gpu_scatter_add(void* data, size_t count, drun_dtype dtype, const void* indices,
                                  drun_dtype index_dtype, const void* values, size_t n, uint64_t* n_bad, void* stream);
DRUN_API int drun_gpu_scatter_zero(void* data, size_t count, drun_dtype dtype, const void* indices,
                                   drun_dtype index_dtype, size_t n, uint64_t* n_bad, void* stream);

/* a.b, a.a and b.b of two vectors of f32 or f64, in double precision: to dots[0], [1] and [2]. `dots` has so many
 * bytes, is aligned to 8, and what is behind these three is of use to the kernels alone. The order of the additions,
 * and so the result's bits, depend on `count` alone. */
DRUN_API size_t drun_gpu_dots_bytes(size_t count);
DRUN_API int drun_gpu_dots(const void* a, const void* b, size_t count, drun_dtype dtype, double* dots, void* stream);
/* Adasum of the two, of which `dots` are the dots: into[i] = (1 - a.b / (2 a.a)) a[i] + (1 - a.b / (2 b.b)) b[i], where
 * a factor is 1 if its vector is all zeros. `into` may be a or b. */
DRUN_API int drun_gpu_adasum(const void* a, const void* b, size_t count, drun_dtype dtype, const double* dots,
                             void* into, void* stream);

#ifdef __cplusplus
}
#endif
#endif
