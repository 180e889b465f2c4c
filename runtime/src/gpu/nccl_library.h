// The functions of NCCL that libdrun calls: a table of pointers into libnccl.so.2, which libdrun does not link. The
// declarations are our own, so that libdrun builds without NCCL; names, numbers and layouts are those of NCCL 2.18 and
// later.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "runtime/include/drun/drun.h"
#include "runtime/src/gpu/driver.h"

namespace drun::runtime::gpu {

using NcclResult = int;
inline constexpr NcclResult kNcclSuccess = 0, kNcclRemoteError = 6, kNcclInProgress = 7;
using NcclHandle = struct NcclCommunicator*;
using NcclRedOp = int;
inline constexpr NcclRedOp kNcclSum = 0, kNcclProd = 1, kNcclMax = 2, kNcclMin = 3, kNcclAvg = 4;
inline constexpr int kNcclScalarInHostMemory = 1;  // ncclScalarHostImmediate
inline constexpr int kOldestNccl = 21800;          // the first with ncclCommSplit and non-blocking communicators

struct NcclId {
  char bytes[128];
};

// ncclConfig_t of 2.18: later versions accept it, and use their defaults for newer fields. Blocking, because from 2.23
// on a group of calls of a communicator that is not costs a thread (groupLaunchNonBlocking in NCCL's src/group.cc).
// NCCL prefers the user's NCCL_COMM_BLOCKING.
struct NcclConfig {
  std::size_t size = sizeof(NcclConfig);
  unsigned magic = 0xcafebeef, version = kOldestNccl;
  int blocking = 1;
  int cga_cluster_size = kUndefined, min_ctas = kUndefined, max_ctas = kUndefined;
  const char* net_name = nullptr;
  int split_share = kUndefined;
  int unused = kUndefined;  // padding, where later versions have a field

  static constexpr int kUndefined = std::numeric_limits<int>::min();
};

// Functions, without the prefix "nccl". Optional functions that are missing are nullptr.
struct Nccl {
  std::string path;  // "libnccl.so.2" if the process had loaded it
  int version = 0;   // 22809 is 2.28.9
  int cuda = 0;      // version of CUDA it was built with: 13000 is 13.0; 0: unknown

  NcclResult (*GetVersion)(int* version);
  const char* (*GetErrorString)(NcclResult result);
  const char* (*GetLastError)(NcclHandle comm);
  NcclResult (*GetUniqueId)(NcclId* id);
  NcclResult (*CommInitRankConfig)(NcclHandle* comm, int n_ranks, NcclId id, int rank, NcclConfig* config);
  // `part` is written when the parent is no longer in progress. No `config`: the parent's.
  NcclResult (*CommSplit)(NcclHandle comm, int color, int key, NcclHandle* part, NcclConfig* config);
  NcclResult (*CommGetAsyncError)(NcclHandle comm, NcclResult* error);
  NcclResult (*CommFinalize)(NcclHandle comm);
  NcclResult (*CommDestroy)(NcclHandle comm);
  NcclResult (*CommAbort)(NcclHandle comm);
  NcclResult (*GroupStart)();
  NcclResult (*GroupEnd)();
  NcclResult (*AllReduce)(const void* send, void* recv, std::size_t count, int dtype, NcclRedOp op, NcclHandle comm,
                          Stream stream);
  NcclResult (*Reduce)(const void* send, void* recv, std::size_t count, int dtype, NcclRedOp op, int root,
                       NcclHandle comm, Stream stream);
  NcclResult (*ReduceScatter)(const void* send, void* recv, std::size_t recv_count, int dtype, NcclRedOp op,
                              NcclHandle comm, Stream stream);
  NcclResult (*Broadcast)(const void* send, void* recv, std::size_t count, int dtype, int root, NcclHandle comm,
                          Stream stream);
  NcclResult (*AllGather)(const void* send, void* recv, std::size_t count, int dtype, NcclHandle comm, Stream stream);
  NcclResult (*Send)(const void* data, std::size_t count, int dtype, int peer, NcclHandle comm, Stream stream);
  NcclResult (*Recv)(void* data, std::size_t count, int dtype, int peer, NcclHandle comm, Stream stream);
  NcclResult (*RedOpCreatePreMulSum)(NcclRedOp* op, void* scalar, int dtype, int residence, NcclHandle comm);
  NcclResult (*RedOpDestroy)(NcclRedOp op, NcclHandle comm);
  // Optional: from 2.19 on.
  NcclResult (*MemAlloc)(void** memory, std::size_t n_bytes);
  NcclResult (*MemFree)(void* memory);
  NcclResult (*CommRegister)(NcclHandle comm, void* memory, std::size_t n_bytes, void** handle);
  NcclResult (*CommDeregister)(NcclHandle comm, void* handle);
};

// True unless the function failed: inside a group, and before the connections exist, a call may be in progress.
inline bool is_begun(NcclResult result) { return result == kNcclSuccess || result == kNcclInProgress; }

int nccl_type_of(drun_dtype dtype);
std::string nccl_version_text(int version);  // "2.28.9"
// The reason why this NCCL can't work with a driver that supports CUDA up to that version (cuDriverGetVersion), or "".
// Within one major version of CUDA any driver works.
std::string why_not_with_driver(const Nccl& nccl, int driver_cuda);
// The reason why this NCCL has no code for a GPU of that compute capability (75: 7.5), or "". CUDA 13 compiles for 7.5
// and later.
std::string why_not_with_gpu(const Nccl& nccl, int compute_capability);

// Paths to try, in order, if the process has not loaded NCCL: only `named` ($DRUN_NCCL_LIB) if it is not empty; else
// the NCCL of PyTorch's wheels in the Python environments that `get_env` names (VIRTUAL_ENV, CONDA_PREFIX, and that of
// the python3 in PATH), the loader's search path, and CUDA's folders. Reads the file system; starts no program.
std::vector<std::string> nccl_candidates(const std::string& named, const char* (*get_env)(const char*));

// Loads NCCL once per process. nullptr: there is no usable one; `why_not` has the reason. Thread-safe.
const Nccl* load_nccl(std::string& why_not);
// Opens one library; for tests and for load_nccl().
bool open_nccl(const std::string& path, bool only_if_loaded, Nccl& nccl, std::string& why_not);

}  // namespace drun::runtime::gpu
