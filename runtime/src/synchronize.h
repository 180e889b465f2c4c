// drun_synchronize: waits for a stream of the program without hanging when the job fails. docs/gpu.md, "Streams,
// requests, capture".
#pragma once

#include <chrono>

#include "runtime/src/failure.h"
#include "runtime/src/gpu/driver.h"

namespace drun::runtime {

// Waits until the stream is done or the job is known to have failed. Polls for failures periodically, if no call has
// its turn, and at the end, because NCCL's work ends when it is aborted.
// The timeout, for which 0 stands for the job's, is that of this wait; it ends no call.
Status synchronize(gpu::Stream stream, std::chrono::milliseconds timeout);

}  // namespace drun::runtime
