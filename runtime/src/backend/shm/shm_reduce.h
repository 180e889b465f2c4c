// The reductions through shared memory, with the steps of a StepBarrier. All ranks reduce in the order of ranks, so
// that all get the same bits. docs/collectives.md, "Shared memory inside a host".
#pragma once

#include <cstddef>
#include <vector>

#include "runtime/src/backend/shm/step_barrier.h"
#include "runtime/src/failure.h"
#include "runtime/src/operation.h"
#include "runtime/src/span.h"

namespace drun::runtime::shm {

// Up to this size every rank reduces everything: saving a wait is worth more than the arithmetic costs.
inline constexpr std::size_t kSmallBytes = 8u << 10;

// Reduces at most kSmallBytes at `from`, which may be the place of the result, with one wait.
Status reduce_at_once(StepBarrier& barrier, const Operation& operation, const char* from, const Span& data);
// Reduces any number of elements, piece by piece. `takes`: this rank gets the result at `data`; its other contents are
// undefined afterwards.
Status reduce_in_parts(StepBarrier& barrier, const Operation& operation, const char* from, const Span& data,
                       bool takes);
// A reduce_scatter with one block of `data` per member.
Status reduce_blocks(StepBarrier& barrier, const Operation& operation, const Span& data,
                     const std::vector<Block>& blocks);

}  // namespace drun::runtime::shm
