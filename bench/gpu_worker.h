// The worker of `drun bench --backend nccl`. The agent is static, and a static program can load neither NVIDIA's driver
// nor NCCL: it has another one inside, dynamic, which takes its place in the worker's process.
#pragma once

#include <string>

#include "base/error.h"

namespace drun::bench {

// Returns only if it can't be started. `argv` and the environment become that program's.
Error become_gpu_worker(char** argv);

}  // namespace drun::bench
