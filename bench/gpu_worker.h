// The worker of `drun bench --backend nccl`. The agent is static, and a static program can load neither NVIDIA's
// driver nor NCCL. It therefore contains a dynamic program, which replaces it in the worker's process.
#pragma once

#include <string>

#include "base/error.h"

namespace drun::bench {

// Executes that program with `argv` and our environment. Returns only if it can't be started.
Error become_gpu_worker(char** argv);

}  // namespace drun::bench
