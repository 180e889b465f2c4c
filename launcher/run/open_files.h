// The file descriptors that drun needs for a job. Pure.
#pragma once

#include <cstddef>

#include "base/error.h"

namespace drun::launcher {

struct OpenFiles {
  std::size_t n_hosts = 0;
  std::size_t n_workers = 0;      // each may join the rendezvous
  std::size_t n_relayed = 0;      // workers of hosts whose rendezvous is relayed: two descriptors each
  bool has_output_files = false;  // two for each worker
  bool serves_horovod = false;    // a worker may connect to Horovod's rendezvous, too: two descriptors if it is relayed
};

// Fails if `limit` (0: unknown) is too low for the job: one line before the start is better than whatever fails first
// in the middle of it. Else returns the number of connections that the rendezvous may have beyond one for each worker.
Result<std::size_t> check_open_files(const OpenFiles& files, std::size_t limit);

}  // namespace drun::launcher
