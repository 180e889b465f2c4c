// What an algorithm needs of the network: flows to and from peers, run to their end. The TCP backend is one.
#pragma once

#include <vector>

#include "runtime/src/algorithm/flow.h"
#include "runtime/src/failure.h"
#include "runtime/src/operation.h"

namespace drun::runtime {

class Exchange {
 public:
  virtual ~Exchange() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  // Moves all flows at once until every one is finished, or fails as a whole. Each flow is one message with its header,
  // also one of no bytes. At most one flow per peer and direction. The first flow with a peer that is not at rank +-
  // 2^k (mod size) takes longer: it has to be connected.
  virtual Status run(const Operation& operation, const std::vector<Flow*>& flows) = 0;
};

}  // namespace drun::runtime
