/* drun's runtime library: collectives between the workers of a job that drun started. C99, C ABI.
 *
 * Every function that returns int returns DRUN_OK or a negative drun_status; drun_last_error() then has the text, which
 * names the rank, the host and the operation. Calls of one process are carried out one after the other, from whatever
 * thread they come; all ranks must call the same collectives in the same order. A program that was not started by drun
 * is a job of size 1: everything works, with itself. The page docs/runtime-api.md says more. */
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
  DRUN_ERROR_ARGUMENT = -1,    /* a wrong argument; nothing was sent */
  DRUN_ERROR_STATE = -2,       /* before drun_init, after drun_finalize, in a forked child */
  DRUN_ERROR_UNSUPPORTED = -3, /* a combination that this version can't do */
  DRUN_ERROR_TIMEOUT = -4,     /* a deadline passed; the text names who was waited for */
  DRUN_ERROR_PEER = -5,        /* another rank died, left or failed */
  DRUN_ERROR_MISMATCH = -6,    /* ranks called different operations */
  DRUN_ERROR_ABORTED = -7,     /* drun ended the job, or drun_abort was called */
  DRUN_ERROR_CONNECT = -8,     /* the agent, the rendezvous or a peer can't be reached, or refused the key */
  DRUN_ERROR_TRUNCATED = -9,   /* drun_kv_get: the buffer is too small; the needed size was stored */
  DRUN_ERROR_SYSTEM = -10,     /* the operating system said no */
  DRUN_ERROR_INTERNAL = -11
} drun_status;

/* Element types. The numbers are final. */
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

/* Reductions. The numbers are final. Integers wrap around; AVG is the sum divided by the size, for integers truncated
 * towards zero; MIN and MAX of a NaN are NaN. ADASUM is for allreduces of f32 and f64: gradients that point the same
 * way are averaged, orthogonal ones added (Maleki et al., "Scaling distributed training with adaptive summation"). */
typedef enum drun_op DRUN_AS_INT {
  DRUN_SUM = 0,
  DRUN_PROD = 1,
  DRUN_MIN = 2,
  DRUN_MAX = 3,
  DRUN_AVG = 4,
  DRUN_ADASUM = 5
} drun_op;

/* A group of ranks, in an order of its own. Three are there from the start; others come of drun_comm_split. */
typedef struct drun_comm_s* drun_comm;
#define DRUN_COMM_WORLD ((drun_comm)0)   /* all ranks of the job */
#define DRUN_COMM_LOCAL ((drun_comm)1)   /* the ranks of this host */
#define DRUN_COMM_CROSS ((drun_comm)2)   /* the ranks of all hosts that have the same local rank */
#define DRUN_COMM_NONE ((drun_comm)(-1)) /* none, of a split */

/* A call that goes on in the background. NULL: none. */
typedef struct drun_request_s* drun_request;

/* Set struct_size to sizeof(drun_init_options), as DRUN_INIT_OPTIONS does; fields that a later version adds are at the
 * end. 0 in a timeout: the default. */
typedef struct drun_init_options {
  size_t struct_size;
  int64_t init_timeout_ms; /* for all ranks to come; default 120 s or $DRUN_INIT_TIMEOUT (seconds) */
  int64_t op_timeout_ms;   /* for every collective; default 300 s or $DRUN_OP_TIMEOUT (seconds) */
} drun_init_options;
/* Where the memory of a call is. The numbers are final. */
typedef enum drun_memory DRUN_AS_INT {
  /* The driver is asked, if the process has loaded one; what it manages or has pinned is the host's. */
  DRUN_MEMORY_AUTO = 0,
  DRUN_MEMORY_HOST = 1,
  DRUN_MEMORY_DEVICE = 2 /* of a GPU */
} drun_memory;

/* About one call; NULL where it is asked for: the defaults. As above, start from DRUN_CALL_OPTIONS. Ranks need not
 * agree on it, but for names, the scales of allreduces in a group, and of reductions on GPUs. */
typedef struct drun_call_options {
  size_t struct_size;
  const char* name;   /* shown in errors: "allreduce #12 'grad.17'", 63 bytes of it. NULL: none. A collective, of memory
                       * of the host, that two ranks give different names is DRUN_ERROR_MISMATCH */
  int64_t timeout_ms; /* 0: the communicator's */
  double prescale;    /* reductions of floating types: what is given is multiplied by this, */
  double postscale;   /* the result by that; both 1 elsewhere */
  /* Not NULL: the call goes on in the background, and is known by what is stored here; see drun_wait. The memory of the
   * call belongs to it until then; arrays of counts and offsets, and the options, do not. */
  drun_request* request;
  /* Of memory of a GPU. The call comes after all work that `stream`, a CUstream or cudaStream_t, has got, and before
   * all that it gets after the call has returned, or drun_wait has, until when there must be such a stream: it need not
   * be over by then. NULL: the legacy default stream. cudaStreamPerThread: not with a request. */
  drun_memory memory;
  void* stream;
} drun_call_options;

/* clang-format off */
#define DRUN_INIT_OPTIONS {sizeof(drun_init_options), 0, 0}
#define DRUN_CALL_OPTIONS {sizeof(drun_call_options), NULL, 0, 1.0, 1.0, NULL, DRUN_MEMORY_AUTO, NULL}
/* clang-format on */

/* Joins the job; returns when all ranks have come. Another program may have been in the job before, in the same worker,
 * and have ended in whatever way: all ranks start anew then. NULL: defaults. A second call before drun_finalize:
 * DRUN_ERROR_STATE. */
DRUN_API int drun_init(const drun_init_options* options);
/* Leaves the job in an orderly way. Other ranks may still be working, but can't count on this one. Without drun_init:
 * OK. Waits for what is under way on GPUs, and returns what went wrong there, if no call has yet. */
DRUN_API int drun_finalize(void);
DRUN_API int drun_is_initialized(void); /* 0 or 1 */

/* -1 before drun_init. */
DRUN_API int drun_rank(void);
DRUN_API int drun_size(void);
DRUN_API int drun_local_rank(void); /* among the ranks of this host */
DRUN_API int drun_local_size(void);
DRUN_API int drun_cross_rank(void); /* among the ranks of other hosts with the same local rank */
DRUN_API int drun_cross_size(void);
DRUN_API int drun_is_homogeneous(void); /* 1: all hosts have the same number of ranks; 0: they have not */

/* Rank and size in a communicator; -1 for what is none. */
DRUN_API int drun_comm_rank(drun_comm comm);
DRUN_API int drun_comm_size(drun_comm comm);
/* Collective on `comm`: those who give the same colour get a communicator of their own, in the order of keys, then of
 * ranks. A colour below 0: DRUN_COMM_NONE is stored. Never asynchronous. */
DRUN_API int drun_comm_split(drun_comm comm, int colour, int key, drun_comm* result, const drun_call_options* options);
/* Of one that came of a split; of this rank alone. Sets it to DRUN_COMM_NONE, which is also fine to be given. */
DRUN_API int drun_comm_free(drun_comm* comm);

/* Collectives. They block, unless options->request is set. `count` is in elements; 0 is fine. In place: send == recv.
 * Other overlaps are an error. After a failure `recv` is undefined and no communicator is of any more use: later calls
 * return the same failure. */
DRUN_API int drun_allreduce(const void* send, void* recv, size_t count, drun_dtype dtype, drun_op op, drun_comm comm,
                            const drun_call_options* options);
DRUN_API int drun_broadcast(void* data, size_t count, drun_dtype dtype, int root, drun_comm comm,
                            const drun_call_options* options);
/* `recv` gets the result at the root; elsewhere it is not used and may be NULL. */
DRUN_API int drun_reduce(const void* send, void* recv, size_t count, drun_dtype dtype, drun_op op, int root,
                         drun_comm comm, const drun_call_options* options);
/* `send` has size blocks of `recv_count` elements; each rank gets the reduced block of its number. In place:
 * recv == send + rank * recv_count; the other blocks stay as they are. */
DRUN_API int drun_reduce_scatter(const void* send, void* recv, size_t recv_count, drun_dtype dtype, drun_op op,
                                 drun_comm comm, const drun_call_options* options);
/* Every rank gives `count` elements; `recv` gets size * count, in rank order. In place: send == recv + rank * count. */
DRUN_API int drun_allgather(const void* send, void* recv, size_t count, drun_dtype dtype, drun_comm comm,
                            const drun_call_options* options);
/* Every rank gives as many elements as it likes: rank i's recv_counts[i], known to all, go to recv + recv_offsets[i];
 * both in elements, recv_offsets NULL: one behind the other. send_count == recv_counts[rank]. In place: send is this
 * rank's place in `recv`. */
DRUN_API int drun_allgatherv(const void* send, size_t send_count, void* recv, const size_t* recv_counts,
                             const size_t* recv_offsets, drun_dtype dtype, drun_comm comm,
                             const drun_call_options* options);
/* `count` elements of each rank; at the root `recv` gets size * count, in rank order, elsewhere it is not used and may
 * be NULL. In place at the root: send == recv + root * count. */
DRUN_API int drun_gather(const void* send, void* recv, size_t count, drun_dtype dtype, int root, drun_comm comm,
                         const drun_call_options* options);
/* The other way: `send` has size * count elements at the root. In place there: recv == send + root * count. */
DRUN_API int drun_scatter(const void* send, void* recv, size_t count, drun_dtype dtype, int root, drun_comm comm,
                          const drun_call_options* options);
/* Block i of `send` goes to rank i, block i of `recv` comes from it; blocks have `count` elements. Not in place. */
DRUN_API int drun_alltoall(const void* send, void* recv, size_t count, drun_dtype dtype, drun_comm comm,
                           const drun_call_options* options);
/* The same with blocks of any sizes: send_counts[i] elements at send + send_offsets[i] go to rank i, whose recv_counts
 * must say the same. Offsets NULL: one block behind the other. */
DRUN_API int drun_alltoallv(const void* send, const size_t* send_counts, const size_t* send_offsets, void* recv,
                            const size_t* recv_counts, const size_t* recv_offsets, drun_dtype dtype, drun_comm comm,
                            const drun_call_options* options);
/* From one rank to another; the others take no part. Sends of a pair arrive in their order, and stand at the same place
 * between the pair's collectives on both sides. A send may, but need not, wait for its receive. */
DRUN_API int drun_send(const void* data, size_t count, drun_dtype dtype, int peer, drun_comm comm,
                       const drun_call_options* options);
DRUN_API int drun_recv(void* data, size_t count, drun_dtype dtype, int peer, drun_comm comm,
                       const drun_call_options* options);
DRUN_API int drun_barrier(drun_comm comm, const drun_call_options* options);

/* Asynchronous calls of a process are carried out one after the other, in the order in which they were made, on a
 * thread of the library; a blocking call waits for those before it. All calls return DRUN_OK at once, and drun_wait
 * what came of them, also if an argument was wrong. */
/* Until the call is over; returns its status, frees the request and sets it to NULL, which is fine to be given. A call
 * on memory of a GPU that NCCL carries is over when it is enqueued: from here on its stream waits for it, and what the
 * stream got before goes on beside it. */
DRUN_API int drun_wait(drun_request* request);
/* *done: 0, the call goes on; 1, as drun_wait, also for the stream. DRUN_ERROR_STATE from either, and the request
 * stays: the call was made before its stream's capture, which is under way. */
DRUN_API int drun_test(drun_request* request, int* done);

/* As drun_wait, but it is `stream`, a CUstream or cudaStream_t of any GPU of this process, that waits for a call on
 * memory of a GPU; that of the call does not, and must not touch the call's memory before it has waited for `stream`.
 * NULL: the legacy default stream of the call's GPU. */
DRUN_API int drun_wait_stream(drun_request* request, void* stream);
/* Until `stream` has done all that it got, as cudaStreamSynchronize; but it says what became of the calls in it: where
 * one has failed, or another rank has not come to it by its deadline, it returns that failure, with the rank at fault,
 * as the next call would, and what the calls have written is undefined. With `timeout_ms`, 0: DRUN_OP_TIMEOUT,
 * DRUN_ERROR_TIMEOUT if work is left then; that is no failure of the job. NULL: the legacy default stream of the GPU
 * whose context is current, or of the job's if none is. Comes after the calls that were made before it; those with a
 * request are in their streams only once they were waited for. Not while the stream is being captured:
 * DRUN_ERROR_STATE. A process that has no driver of GPUs loaded has nothing to wait for. */
DRUN_API int drun_synchronize(void* stream, int64_t timeout_ms);

/* The calls that this thread makes between the two are begun together by the last drun_group_end: sends and receives go
 * at the same time and can't wait for one another, and small allreduces that follow each other and have the same type,
 * reduction, scales and communicator travel as one. All ranks must group alike. Between the two each call returns
 * DRUN_OK; drun_group_end returns what came of those without a request, when they are over. Groups may be nested. */
DRUN_API int drun_group_start(void);
DRUN_API int drun_group_end(void);
/* In place of the drun_group_end of the innermost group: forgets the calls that were made in it. None of them has
 * begun; what drun_wait returns of those with a request is DRUN_ERROR_STATE. All ranks must cancel alike, or fail. */
DRUN_API int drun_group_cancel(void);

/* Small values that all ranks see, until they have called drun_finalize. A key is written once: a second, different
 * value is an error. Of programs that follow one another in the workers, each has keys of its own. */
DRUN_API int drun_kv_set(const char* key, const void* value, size_t n_bytes);
/* Waits until the key is there. In: *n_bytes is the room at `value`; out: the size of the value. */
DRUN_API int drun_kv_get(const char* key, void* value, size_t* n_bytes, int64_t timeout_ms);

/* Ends the whole job, giving `why` as the reason; also from another thread while a collective waits, which then
 * returns DRUN_ERROR_ABORTED. It returns: the caller still has to exit. */
DRUN_API int drun_abort(const char* why);

/* About the last call of this thread that failed. The text is valid until the next call of this thread. */
DRUN_API const char* drun_last_error(void);
DRUN_API int drun_last_error_rank(void);         /* the rank at fault, -1: none or unknown */
DRUN_API const char* drun_last_error_host(void); /* its host, "" if unknown */

DRUN_API const char* drun_version(void); /* "0.1.0" */
/* The NCCL that collectives on GPUs use, loaded if it was not: that of the process, of $DRUN_NCCL_LIB, of the Python
 * environment, of the system. 22809 is 2.28.9; `path` may be NULL, what it gets lives as long as the process.
 * DRUN_ERROR_UNSUPPORTED: there is none that will do, and the text says why. Before drun_init, too, from any thread. */
DRUN_API int drun_nccl_version(int* version, const char** path);

#ifdef __cplusplus
}
#endif
#endif
