// A rank of the job and its placement.
#pragma once

#include <string>

namespace drun::rendezvous {

// Set by the launcher's placement; the server sends it to all ranks, in rank order.
struct Member {
  int rank = 0;
  int local_rank = 0, local_size = 1;
  int cross_rank = 0, cross_size = 1;
  int host_index = 0;
  std::string host;  // for messages
};

}  // namespace drun::rendezvous
