// A rank of the job as the launcher placed it.
#pragma once

#include <string>

namespace drun::rendezvous {

// What the server tells about each rank, in rank order. From the launcher's placement.
struct Member {
  int rank = 0;
  int local_rank = 0, local_size = 1;
  int cross_rank = 0, cross_size = 1;
  int host_index = 0;
  std::string host;  // for messages
};

}  // namespace drun::rendezvous
