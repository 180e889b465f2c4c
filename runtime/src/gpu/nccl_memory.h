// Memory of the program that is registered with NCCL (drun_register). docs/gpu.md, "Memory".
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "runtime/src/gpu/device.h"
#include "runtime/src/gpu/nccl_library.h"
#include "runtime/src/job_context.h"

namespace drun::runtime::gpu {

// True if a communicator of the process has registered memory that begins in these bytes. Thread-safe.
bool is_registered(const void* memory, std::size_t n_bytes);

// The registered memory of one communicator, which owns this. One thread at a time, as the communicator. The owner must
// take or remove all memory before its communicator of NCCL ends.
class NcclMemory {
 public:
  NcclMemory(const JobContext& job_context, const Nccl& nccl, const Device& device)
      : job_context_(job_context), nccl_(nccl), device_(device) {}

  // Registers memory with `comm`. Returns the reason if that fails, else "".
  std::string add(NcclHandle comm, void* memory, std::size_t n_bytes);
  // Deregisters memory that begins in these bytes; no work in progress may use it. Returns the reason if that fails,
  // else "". NCCL may wait for other ranks: if it waits for longer than a call may take, the process ends.
  std::string remove(NcclHandle comm, const void* memory, std::size_t n_bytes);
  // Returns NCCL's handles of all memory, which the caller deregisters, and forgets it.
  std::vector<void*> take_all();

 private:
  struct Registered {
    std::size_t n_bytes;
    void* handle;
  };

  const JobContext& job_context_;
  const Nccl& nccl_;
  const Device& device_;
  std::map<std::uintptr_t, Registered> registered_;  // by address
};

}  // namespace drun::runtime::gpu
