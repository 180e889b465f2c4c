// The network as an algorithm sees it: flows to and from peers, run to their end. Implemented by the TCP backend.
#pragma once

#include <vector>

#include "runtime/src/algorithm/flow.h"
#include "runtime/src/failure.h"
#include "runtime/src/operation.h"

namespace drun::runtime {

class PeerFlows {
 public:
  virtual ~PeerFlows() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  // Moves all flows at once until every one is finished, or fails as a whole. Each flow is one message with its header,
  // even without bytes. At most one flow per peer and direction. The first flow with a peer that is not at rank +- 2^k
  // (mod size) takes longer, because it has to connect.
  virtual Status run(const Operation& operation, const std::vector<Flow*>& flows) = 0;
};

}  // namespace drun::runtime
