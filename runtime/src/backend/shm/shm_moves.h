// Data movement through shared memory, a slot at a time, with the steps of a StepBarrier: write, wait, copy.
#pragma once

#include <cstddef>
#include <vector>

#include "runtime/src/backend/shm/step_barrier.h"
#include "runtime/src/failure.h"
#include "runtime/src/operation.h"
#include "runtime/src/span.h"

namespace drun::runtime::shm {

Status broadcast(StepBarrier& barrier, const Operation& operation, char* data, std::size_t total);
// `data` holds a block for each member, the own one already in place.
Status allgather(StepBarrier& barrier, const Operation& operation, char* data, const std::vector<Block>& blocks);

}  // namespace drun::runtime::shm
