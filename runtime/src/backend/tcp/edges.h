// Which ranks are connected, and getting them connected.
#pragma once

#include <chrono>
#include <map>
#include <vector>

#include "base/fd.h"
#include "runtime/src/failure.h"
#include "runtime/src/world.h"

namespace drun::runtime {

// The ranks at distance 2^k on the circle: all edges of the binomial trees from any root, of the dissemination barrier
// and of the ring. Sorted; about 2 log2(size) of them.
std::vector<int> neighbours(int rank, int size);

// Connects to every neighbour. Of a pair the higher rank dials; if that does not work within `patience` it asks the
// other side, through the rendezvous, to dial instead. Returns connected, tuned, non-blocking sockets by rank; nobody
// listens any more afterwards. Errors name every neighbour that is missing, and why.
Outcome<std::map<int, Fd>> connect_edges(const World& world,
                                         std::chrono::milliseconds patience = std::chrono::seconds(3));

}  // namespace drun::runtime
