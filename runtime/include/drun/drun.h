/* drun's runtime library: collectives between the workers of a job that drun started. C99, C ABI.
 *
 * Errors: functions return DRUN_OK or a negative drun_status, unless their comment says otherwise. drun_last_error()
 * then returns the text, which names the rank, the host and the operation.
 * Threads: any thread may call. The calls of a process are carried out one after the other. All ranks of a communicator
 * must call the same collectives in the same order, with the same count, type, reduction and root.
 * A program that was not started by drun is a job of size 1, in which every call works. docs/runtime-api.md says
 * more. */
#ifndef DRUN_DRUN_H
#define DRUN_DRUN_H

#include <stddef.h>
#include <stdint.h>

#if defined(DRUN_STATIC)
#define DRUN_API
#else
#define DRUN_API __attribute__((visibility("default")))
#endif

#ifdef __cplusplus
#define DRUN_AS_INT : int /* any int may be passed, and is checked */
extern "C" {
#else
#define DRUN_AS_INT
#endif

typedef enum drun_status DRUN_AS_INT {
  DRUN_OK = 0,
  DRUN_ERROR_ARGUMENT = -1,    /* an invalid argument; nothing was sent */
  DRUN_ERROR_STATE = -2,       /* not allowed now: before drun_init, after drun_finalize, in a forked child */
  DRUN_ERROR_UNSUPPORTED = -3, /* a combination that this version does not support */
  DRUN_ERROR_TIMEOUT = -4,     /* a deadline passed; the text names the ranks that were waited for */
  DRUN_ERROR_PEER = -5,        /* another rank died, left or failed */
  DRUN_ERROR_MISMATCH = -6,    /* ranks called different operations, or the same one with different arguments */
  DRUN_ERROR_ABORTED = -7,     /* drun ended the job, or drun_abort was called */
  DRUN_ERROR_CONNECT = -8,     /* the agent, the rendezvous or a peer can't be reached, or rejected the job key */
  DRUN_ERROR_TRUNCATED = -9,   /* drun_kv_get: the buffer is too small; the needed size was stored */
  DRUN_ERROR_SYSTEM = -10,     /* an error of the operating system, the GPU driver or NCCL */
  DRUN_ERROR_INTERNAL = -11
} drun_status;

/* Element types. The numbers never change. */
typedef enum drun_dtype DRUN_AS_INT {
  DRUN_INT8 = 0,
  DRUN_UINT8 = 1,
  DRUN_INT32 = 2,
  DRUN_UINT32 = 3,
  DRUN_INT64 = 4,
  DRUN_UINT64 = 5,
  DRUN_FLOAT16 = 6,
  DRUN_BFLOAT16 = 7,
  DRUN_FLOAT32 = 8,
  DRUN_FLOAT64 = 9
} drun_dtype;

/* Reductions. The numbers never change. Integers wrap around. AVG is the sum divided by the size of the communicator,
 * for integers truncated towards zero. MIN and MAX of a NaN are NaN. ADASUM is for drun_allreduce of f32 and f64: it
 * averages gradients that point in the same direction and adds orthogonal ones (Maleki et al., "Scaling distributed
 * training with adaptive summation"). */
typedef enum drun_op DRUN_AS_INT {
  DRUN_SUM = 0,
  DRUN_PROD = 1,
  DRUN_MIN = 2,
  DRUN_MAX = 3,
  DRUN_AVG = 4,
  DRUN_ADASUM = 5
} drun_op;

/* A communicator: a group of ranks in an order of its own. Three exist from the start; drun_comm_split makes others. */
typedef struct drun_comm_s* drun_comm;
#define DRUN_COMM_WORLD ((drun_comm)0)   /* all ranks of the job */
#define DRUN_COMM_LOCAL ((drun_comm)1)   /* the ranks of this host */
#define DRUN_COMM_CROSS ((drun_comm)2)   /* the ranks with the same local rank, one on each host */
#define DRUN_COMM_NONE ((drun_comm)(-1)) /* no communicator: result of a split with a negative color */

/* Handle of an asynchronous call; NULL: no call. The library owns it until drun_wait, drun_test or drun_wait_stream
 * frees it. */
typedef struct drun_request_s* drun_request;

/* Set struct_size to sizeof(drun_init_options), as DRUN_INIT_OPTIONS does: later versions add fields at the end. A
 * timeout of 0 means the default. */
typedef struct drun_init_options {
  size_t struct_size;
  int64_t init_timeout_ms; /* for all ranks to join; default: $DRUN_INIT_TIMEOUT (seconds), else 120 s */
  int64_t op_timeout_ms;   /* for each call; default: $DRUN_OP_TIMEOUT (seconds), else 300 s */
} drun_init_options;
/* Where the memory of a call is. The numbers never change. */
typedef enum drun_memory DRUN_AS_INT {
  /* Asks the driver, if the process has loaded one. Memory that it manages or has pinned counts as the host's. */
  DRUN_MEMORY_AUTO = 0,
  DRUN_MEMORY_HOST = 1,
  DRUN_MEMORY_DEVICE = 2 /* of a GPU */
} drun_memory;

/* Options of one call; a NULL pointer to them means the defaults. Set struct_size as above, by DRUN_CALL_OPTIONS. Ranks
 * need not pass the same options, except for names, for the scales of allreduces in a group, and for the scales of
 * reductions on GPUs. */
typedef struct drun_call_options {
  size_t struct_size;
  const char* name;   /* shown in errors: "allreduce #12 'grad.17'"; 63 bytes of it are kept. NULL: no name. A
                       * collective on memory of the host that has different names on two ranks fails:
                       * DRUN_ERROR_MISMATCH */
  int64_t timeout_ms; /* deadline of the call; 0: op_timeout_ms of drun_init */
  double prescale;    /* reductions of floating types: factor for the input; 1 elsewhere */
  double postscale;   /* the same for the result */
  /* Not NULL: the call is asynchronous, and its handle is stored here; see drun_wait. The buffers of the call must stay
   * valid, and untouched, until then. Arrays of counts and offsets, and the options, are copied. */
  drun_request* request;
  /* For memory of a GPU. `stream` is a CUstream or cudaStream_t; NULL: the legacy default stream. The call is ordered
   * after the work already enqueued on `stream` and before work enqueued after the call (or drun_wait) returns: it is
   * then enqueued, but need not be complete. The stream must stay valid until then. cudaStreamPerThread can't be used
   * with a request. */
  drun_memory memory;
  void* stream;
} drun_call_options;

/* clang-format off */
#define DRUN_INIT_OPTIONS {sizeof(drun_init_options), 0, 0}
#define DRUN_CALL_OPTIONS {sizeof(drun_call_options), NULL, 0, 1.0, 1.0, NULL, DRUN_MEMORY_AUTO, NULL}
/* clang-format on */

/* Joins the job. Blocks until all ranks have joined, at most for init_timeout_ms: then DRUN_ERROR_TIMEOUT names the
 * ranks that are missing. If another program was in the job before, in the same worker, all ranks start anew, however
 * it ended. NULL: the default options. DRUN_ERROR_STATE on a second call before drun_finalize. */
DRUN_API int drun_init(const drun_init_options* options);
/* Leaves the job and frees all communicators. Other ranks may still be working, but can't count on this one any more.
 * Waits for calls in progress on GPUs, and returns their failure unless an earlier call has. DRUN_OK without
 * drun_init. */
DRUN_API int drun_finalize(void);
DRUN_API int drun_is_initialized(void); /* 0 or 1 */

/* Rank and size in the job, counted from 0; -1 before drun_init and after drun_finalize. */
DRUN_API int drun_rank(void);
DRUN_API int drun_size(void);
DRUN_API int drun_local_rank(void); /* among the ranks of this host */
DRUN_API int drun_local_size(void);
DRUN_API int drun_cross_rank(void); /* among the ranks of other hosts with the same local rank */
DRUN_API int drun_cross_size(void);
DRUN_API int drun_is_homogeneous(void); /* 1 if all hosts have the same number of ranks, else 0 */

/* Rank in a communicator, and its size; -1 if there is no such communicator. */
DRUN_API int drun_comm_rank(drun_comm comm);
DRUN_API int drun_comm_size(drun_comm comm);
/* Collective on `comm`. The ranks that pass the same color get a communicator of their own, in the order of keys, then
 * of ranks. *result is DRUN_COMM_NONE for a negative color, and after a failure. Always blocks, and can't be part of a
 * group. The caller frees *result with drun_comm_free; drun_finalize frees it, too. */
DRUN_API int drun_comm_split(drun_comm comm, int color, int key, drun_comm* result, const drun_call_options* options);
/* Frees a communicator that drun_comm_split made, on this rank alone, and sets *comm to DRUN_COMM_NONE. DRUN_OK if it
 * is DRUN_COMM_NONE already. DRUN_ERROR_ARGUMENT for the three that every job has. */
DRUN_API int drun_comm_free(drun_comm* comm);

/* Collectives. They block unless options->request is set or a group is open. Counts and offsets are in elements; 0 is
 * fine. In place means send == recv, unless the function says otherwise; any other overlap is DRUN_ERROR_ARGUMENT.
 * After any failure except an invalid argument, `recv` is undefined and no communicator can be used: later calls return
 * the same failure. */

/* Reduces `count` elements of all ranks; every rank gets the result. */
DRUN_API int drun_allreduce(const void* send, void* recv, size_t count, drun_dtype dtype, drun_op op, drun_comm comm,
                            const drun_call_options* options);
/* Copies `count` elements at `data` from the root to all ranks. */
DRUN_API int drun_broadcast(void* data, size_t count, drun_dtype dtype, int root, drun_comm comm,
                            const drun_call_options* options);
/* As drun_allreduce, but the root alone gets the result: elsewhere `recv` is not used and may be NULL. */
DRUN_API int drun_reduce(const void* send, void* recv, size_t count, drun_dtype dtype, drun_op op, int root,
                         drun_comm comm, const drun_call_options* options);
/* Reduces `send`, size blocks of `recv_count` elements, over all ranks; rank i gets block i of the result. In place:
 * recv == send + rank * recv_count; the other blocks of `send` are unchanged. */
DRUN_API int drun_reduce_scatter(const void* send, void* recv, size_t recv_count, drun_dtype dtype, drun_op op,
                                 drun_comm comm, const drun_call_options* options);
/* Gathers `count` elements of each rank: `recv` gets size * count elements, in rank order. In place: send == recv +
 * rank * count. */
DRUN_API int drun_allgather(const void* send, void* recv, size_t count, drun_dtype dtype, drun_comm comm,
                            const drun_call_options* options);
/* As drun_allgather, with a block of its own size for each rank: the recv_counts[i] elements of rank i go to recv +
 * recv_offsets[i]. All ranks pass the same counts, and send_count == recv_counts[rank]. Blocks must not overlap.
 * recv_offsets NULL: one block behind the other. In place: `send` is this rank's block in `recv`. */
DRUN_API int drun_allgatherv(const void* send, size_t send_count, void* recv, const size_t* recv_counts,
                             const size_t* recv_offsets, drun_dtype dtype, drun_comm comm,
                             const drun_call_options* options);
/* Gathers `count` elements of each rank at the root: there `recv` gets size * count elements, in rank order; elsewhere
 * it is not used and may be NULL. In place at the root: send == recv + root * count. */
DRUN_API int drun_gather(const void* send, void* recv, size_t count, drun_dtype dtype, int root, drun_comm comm,
                         const drun_call_options* options);
/* The reverse of drun_gather: rank i gets block i of the root's `send`, which has size * count elements; elsewhere
 * `send` is not used and may be NULL. In place at the root: recv == send + root * count. */
DRUN_API int drun_scatter(const void* send, void* recv, size_t count, drun_dtype dtype, int root, drun_comm comm,
                          const drun_call_options* options);
/* Block i of `send` goes to rank i, block i of `recv` comes from rank i. Blocks have `count` elements. Not in place. */
DRUN_API int drun_alltoall(const void* send, void* recv, size_t count, drun_dtype dtype, drun_comm comm,
                           const drun_call_options* options);
/* As drun_alltoall, with blocks of any sizes: the send_counts[i] elements at send + send_offsets[i] go to rank i, whose
 * recv_counts must have the same count for this rank (else DRUN_ERROR_MISMATCH). Blocks of `recv` must not overlap.
 * Offsets NULL: one block behind the other. */
DRUN_API int drun_alltoallv(const void* send, const size_t* send_counts, const size_t* send_offsets, void* recv,
                            const size_t* recv_counts, const size_t* recv_offsets, drun_dtype dtype, drun_comm comm,
                            const drun_call_options* options);
/* Point-to-point: sends to rank `peer`, or receives from it; other ranks take no part. The sends of a pair arrive in
 * their order. A send and its receive have the same count and type, and the same position among the pair's collectives
 * on both sides. A send may, but need not, wait for its receive. */
DRUN_API int drun_send(const void* data, size_t count, drun_dtype dtype, int peer, drun_comm comm,
                       const drun_call_options* options);
DRUN_API int drun_recv(void* data, size_t count, drun_dtype dtype, int peer, drun_comm comm,
                       const drun_call_options* options);
/* Returns once all ranks have called it. */
DRUN_API int drun_barrier(drun_comm comm, const drun_call_options* options);

/* Asynchronous calls of a process are carried out one after the other, in the order in which they were made, on a
 * thread of the library; a blocking call waits for those before it. An asynchronous call returns DRUN_OK at once, and
 * drun_wait returns its status, also if an argument is invalid. Invalid options and an unknown communicator are errors
 * of the call itself, which then stores no request. */

/* Blocks until the call is complete; returns its status, frees the request and sets it to NULL. A NULL request is fine.
 * A call on memory of a GPU that NCCL carries out is complete when it is enqueued: drun_wait makes the call's stream
 * wait for it from here on, and earlier work of the stream runs beside it. DRUN_ERROR_STATE, and the request stays, if
 * the group of the call has not ended, or if the call was made before a capture of its stream that is still going
 * on. */
DRUN_API int drun_wait(drun_request* request);
/* Stores 0 in *done while the call is in progress. Otherwise stores 1 and does what drun_wait does. */
DRUN_API int drun_test(drun_request* request, int* done);

/* As drun_wait, but makes `stream`, a CUstream or cudaStream_t of any GPU of this process, wait for a call on memory of
 * a GPU. The call's own stream does not wait, and must not touch the call's memory before it has waited for `stream`.
 * NULL: the legacy default stream of the call's GPU. */
DRUN_API int drun_wait_stream(drun_request* request, void* stream);
/* Blocks until `stream` has completed its work, as cudaStreamSynchronize, and reports the calls in it: if one has
 * failed, or another rank has not joined it by its deadline, returns that failure, with the rank at fault, as the next
 * call would. What the calls have written is then undefined. DRUN_ERROR_TIMEOUT if work is left after `timeout_ms` (0:
 * op_timeout_ms of drun_init); that is no failure of the job. NULL: the legacy default stream of the GPU whose context
 * is current, or of the job's GPU if none is. Ordered after the calls that were made before; those with a request are
 * in their streams only after drun_wait. DRUN_ERROR_STATE while the stream is being captured. Waits for nothing if the
 * process has loaded no GPU driver. */
DRUN_API int drun_synchronize(void* stream, int64_t timeout_ms);

/* Groups. The calls that this thread makes between the two begin together in the last drun_group_end: sends and
 * receives run at the same time and can't wait for one another, and small allreduces that follow each other, with the
 * same type, reduction, scales and communicator, travel as one. All ranks must group alike, with memory of the same
 * kind. Inside a group each call returns at once, as an asynchronous one. drun_group_end waits for the calls without a
 * request and returns the first failure among them. Groups may be nested. */
DRUN_API int drun_group_start(void);
DRUN_API int drun_group_end(void);
/* Ends the innermost group in place of drun_group_end, and drops the calls that were made in it. None of them has
 * begun; drun_wait returns DRUN_ERROR_STATE for those with a request. All ranks must cancel alike, or fail. */
DRUN_API int drun_group_cancel(void);

/* The job's key-value store: small values that all ranks see until they have called drun_finalize. A key is written
 * once: a second, different value is DRUN_ERROR_ARGUMENT. All keys and values of a job together may have 256 MiB, in at
 * most 2^20 keys: a program that sets a key per step has to delete those that all ranks have read. Programs that follow
 * one another in the workers have separate keys. `value` is copied. */
DRUN_API int drun_kv_set(const char* key, const void* value, size_t n_bytes);
/* Blocks until the key is set, at most for `timeout_ms`. In: *n_bytes is the room at `value`; out: the size of the
 * value. DRUN_ERROR_TRUNCATED if the value does not fit: nothing is copied. */
DRUN_API int drun_kv_get(const char* key, void* value, size_t* n_bytes, int64_t timeout_ms);
/* Deletes the key, whichever rank has set it; it may then be set again, to any value. Stores in *existed, unless that
 * is null, 1 if the key was set, else 0. Calls of drun_kv_get that come later wait until it is set again. */
DRUN_API int drun_kv_delete(const char* key, int* existed);

/* Ends the whole job, with `why` as the reason. May be called while another thread waits in a collective or in
 * drun_kv_get, which then returns DRUN_ERROR_ABORTED. Returns: the caller still has to exit. */
DRUN_API int drun_abort(const char* why);

/* Text, rank and host of the latest failed call of this thread. The text ends with a code for its status, "[mismatch]",
 * which docs/troubleshooting.md explains. The strings are the library's, and valid until the next call of this
 * thread. */
DRUN_API const char* drun_last_error(void);
DRUN_API int drun_last_error_rank(void);         /* the rank at fault, -1: none or unknown */
DRUN_API const char* drun_last_error_host(void); /* its host, "" if unknown */

DRUN_API const char* drun_version(void); /* "0.1.0" */
/* Stores the version of the NCCL that collectives on GPUs use (22809 is 2.28.9), and loads it if necessary. It is the
 * one that the process has loaded, else that of $DRUN_NCCL_LIB, of the Python environment, or of the system. `path` may
 * be NULL; the string that it gets lives as long as the process. DRUN_ERROR_UNSUPPORTED if there is no usable NCCL; the
 * text says why. Any thread, also before drun_init. */
DRUN_API int drun_nccl_version(int* version, const char** path);

#ifdef __cplusplus
}
#endif
#endif
