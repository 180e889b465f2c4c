/* Operations of training on memory of a GPU: the kernels behind drun/training.hpp, for programs that do without it.
 * C99, C ABI; may change until drun 1.0.
 *
 * Unless a function says otherwise:
 * Memory: all of it is on one GPU, and belongs to the caller, who must not free it before the work is complete. Counts
 * are in elements; 0 is fine.
 * Order: the work is enqueued on `stream`, a CUstream or cudaStream_t (NULL: the legacy default stream), and the
 * function returns when it is enqueued. It can be captured in a CUDA graph once it has been called before with the same
 * element types.
 * Errors: DRUN_ERROR_ARGUMENT, also for memory that is not a GPU's; DRUN_ERROR_SYSTEM with the driver's error;
 * DRUN_ERROR_UNSUPPORTED if this build of libdrun has no kernels, or none for that GPU.
 * Every kernel computes the same bits as drun/training.hpp on the host, except those of a NaN. No drun_init is needed.
 * docs/gpu.md says more. */
#ifndef DRUN_GPU_H
#define DRUN_GPU_H

#include "drun/drun.h"

#ifdef __cplusplus
extern "C" {
#endif

/* DRUN_MEMORY_DEVICE if the processor can't access the memory, else DRUN_MEMORY_HOST: also for memory that the driver
 * manages or has pinned. */
DRUN_API drun_memory drun_memory_kind(const void* memory);

/* Number of the memory's GPU, as CUDA counts the GPUs of this process; -1: memory of the host. */
DRUN_API int drun_memory_gpu(const void* memory);

/* Allocates memory on which collectives are fast, aligned to at least 256 bytes; drun_free frees it.
 * DRUN_MEMORY_DEVICE: on the GPU whose context is current (cudaSetDevice, and some call of CUDA's); from 4 MiB on by
 * NCCL's allocator if there is one, which may round up by megabytes. DRUN_MEMORY_HOST: pinned, if the process has
 * loaded a driver and a context is current. *memory is NULL after a failure, and for 0 bytes. DRUN_ERROR_STATE: no
 * context is current; DRUN_ERROR_UNSUPPORTED: the process has loaded no driver. */
DRUN_API int drun_alloc(void** memory, size_t n_bytes, drun_memory kind);
/* As drun_alloc, for memory of the kind and on the GPU of `like`, whatever context is current. */
DRUN_API int drun_alloc_like(void** memory, size_t n_bytes, const void* like);
/* Frees memory of drun_alloc or drun_alloc_like, and deregisters it. Enqueued work that uses it must be complete. NULL
 * is fine; DRUN_ERROR_ARGUMENT for other memory. */
DRUN_API int drun_free(void* memory);

/* Collective on `comm`. Allows NCCL to use these bytes of each member in place, where the connections between the GPUs
 * permit it, which saves NCCL's copies. NCCL then requires that the send and receive buffers of a call are in
 * registered memory on all members, at the same offset from its beginning. For memory of NCCL's allocator, which
 * drun_alloc uses from 4 MiB on, or memory mapped in the same way (cuMemMap).
 * The registration lasts until drun_free, drun_deregister or the end of the communicator. Enqueued work must be
 * complete by then, and a CUDA graph with such a call must not be launched any more.
 * DRUN_OK also if it has no effect: NCCL is not used; one member can't register (a warning says so); the memory is the
 * host's, or cuMemAlloc's, on all members; or some member has no GPU (such a member need not call).
 * DRUN_ERROR_MISMATCH: some members pass memory of a GPU and others do not. Always blocks, and can't be part of a
 * group. */
DRUN_API int drun_register(void* memory, size_t n_bytes, drun_comm comm, const drun_call_options* options);
/* Ends the registration at this address, if there is one, on all communicators. Required before memory that is not
 * drun_alloc's is freed. Not collective, but NCCL requires that all ranks do it before their next call with this
 * memory. As drun_free of registered memory, it is ordered after the calls that were made before and may wait for other
 * ranks' NCCL. DRUN_ERROR_SYSTEM: NCCL's error. */
DRUN_API int drun_deregister(void* memory);

/* Copies `n_bytes` bytes within the GPU. */
DRUN_API int drun_gpu_copy(void* to, const void* from, size_t n_bytes, void* stream);
/* Sets bytes to 0. */
DRUN_API int drun_gpu_clear(void* memory, size_t n_bytes, void* stream);
/* Copies bytes to memory of the host, and waits for the stream. */
DRUN_API int drun_gpu_read(void* host, const void* memory, size_t n_bytes, void* stream);

/* `count` elements at `data`; with a null pointer a gap of as many in the bucket. Arrays of pieces are memory of the
 * host, and are read before the functions return. Copies are fastest if each piece is aligned to 16 bytes, both in
 * memory and in the bucket. */
typedef struct drun_gpu_piece {
  void* data;
  size_t count;
} drun_gpu_piece;

/* Copies pieces of one element type to `bucket`, one behind the other, and zeros to gaps; and back, where gaps are left
 * out. */
DRUN_API int drun_gpu_pack(const drun_gpu_piece* pieces, size_t n_pieces, drun_dtype dtype, void* bucket, void* stream);
DRUN_API int drun_gpu_unpack(const void* bucket, const drun_gpu_piece* pieces, size_t n_pieces, drun_dtype dtype,
                             void* stream);
/* Divides the elements of pieces, f32 or f64, by `divisor`, and writes them to `bucket` as halves (DRUN_FLOAT16 or
 * DRUN_BFLOAT16). A finite element whose quotient is above `limit` in magnitude becomes `limit`, with its sign; the
 * number of these is added to *n_cut, which is in memory of the GPU, too. Gaps become zeros. */
DRUN_API int drun_gpu_narrow(const drun_gpu_piece* pieces, size_t n_pieces, drun_dtype dtype, double divisor,
                             double limit, void* bucket, drun_dtype half, uint64_t* n_cut, void* stream);
/* The reverse: converts halves back and multiplies each by `factor`. */
DRUN_API int drun_gpu_widen(const void* bucket, drun_dtype half, double factor, const drun_gpu_piece* pieces,
                            size_t n_pieces, drun_dtype dtype, void* stream);

/* In place: data[i] *= factor, data[i] /= divisor, data[i] += other[i]. drun_gpu_scale is for all floating types, the
 * others for f32 and f64. */
DRUN_API int drun_gpu_scale(void* data, size_t count, drun_dtype dtype, double factor, void* stream);
DRUN_API int drun_gpu_divide(void* data, size_t count, drun_dtype dtype, double divisor, void* stream);
DRUN_API int drun_gpu_add(void* data, const void* other, size_t count, drun_dtype dtype, void* stream);

/* Selects those of `count` values, f32 or f64, that are worth sending. Top K: the `k` of the largest absolute values,
 * all of them if there are fewer; a NaN is larger than any number, and of equal values the first are chosen. Threshold:
 * all values whose absolute value is at least `threshold`, and NaN. The result is in `selection`:
 * drun_gpu_selection_bytes(count) bytes, aligned to 8, of which the first 8 are the number of chosen values, a
 * uint64_t. */
DRUN_API size_t drun_gpu_selection_bytes(size_t count);
DRUN_API int drun_gpu_find_top_k(const void* values, size_t count, drun_dtype dtype, size_t k, void* selection,
                                 void* stream);
DRUN_API int drun_gpu_find_threshold(const void* values, size_t count, drun_dtype dtype, double threshold,
                                     void* selection, void* stream);
/* Writes the chosen values to `chosen`, in their order, and their indices to `indices` (DRUN_UINT32, for up to 2^32
 * values, or DRUN_UINT64). `values` and `count` are those of the selection, unchanged. */
DRUN_API int drun_gpu_take(const void* values, size_t count, drun_dtype dtype, const void* selection, void* indices,
                           drun_dtype index_dtype, void* chosen, void* stream);
/* data[indices[i]] += values[i], or = 0, for `n` indices, which must be distinct. An index of `count` or more is
 * skipped, and adds 1 to *n_bad, which is in memory of the GPU. */
DRUN_API int drun_gpu_scatter_add(void* data, size_t count, drun_dtype dtype, const void* indices,
                                  drun_dtype index_dtype, const void* values, size_t n, uint64_t* n_bad, void* stream);
DRUN_API int drun_gpu_scatter_zero(void* data, size_t count, drun_dtype dtype, const void* indices,
                                   drun_dtype index_dtype, size_t n, uint64_t* n_bad, void* stream);

/* Dot products a.b, a.a and b.b of two vectors of f32 or f64, in double precision, in dots[0], [1] and [2]. `dots` has
 * drun_gpu_dots_bytes(count) bytes, aligned to 8; the rest of it is scratch. The order of the additions, and so the
 * result's bits, depend on `count` alone. */
DRUN_API size_t drun_gpu_dots_bytes(size_t count);
DRUN_API int drun_gpu_dots(const void* a, const void* b, size_t count, drun_dtype dtype, double* dots, void* stream);
/* Adasum of two vectors whose dot products are in `dots`: into[i] = (1 - a.b / (2 a.a)) a[i] + (1 - a.b / (2 b.b))
 * b[i], where a factor is 1 if its vector is all zeros. `into` may be a or b. */
DRUN_API int drun_gpu_adasum(const void* a, const void* b, size_t count, drun_dtype dtype, const double* dots,
                             void* into, void* stream);

#ifdef __cplusplus
}
#endif
#endif
