// Collectives over several hosts, some with several ranks: shared memory inside each host, the network between hosts.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "runtime/src/backend/backend.h"
#include "runtime/src/backend/shm/shm_backend.h"
#include "runtime/src/backend/tcp/tcp_backend.h"
#include "runtime/src/group.h"

namespace drun::runtime {

// `host_of_member` is a number for each member's host, the same on all ranks. `local` is the shared memory backend of
// the members on our host, null if we are alone there. `over_network` makes a backend between any of the members.
std::unique_ptr<Backend> make_hierarchical_backend(
    const Group& group, std::vector<int> host_of_member, std::unique_ptr<ShmBackend> local,
    std::function<std::unique_ptr<TcpBackend>(const Group&)> over_network);

}  // namespace drun::runtime
