// A barrier in ceil(log2(size)) rounds: in round k each rank sends to rank + 2^k and receives from rank - 2^k (Hensgen,
// Finkel and Manber, IJPP 17(1), 1988).
#pragma once

#include "runtime/src/algorithm/peer_flows.h"

namespace drun::runtime {

Status dissemination_barrier(PeerFlows& exchange, const Operation& operation);

}  // namespace drun::runtime
