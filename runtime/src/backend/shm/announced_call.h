// A call as its rank announces it in shared memory, so that the others can compare it with theirs. Inline, because
// every call announces itself. Pure.
#pragma once

#include <cstdint>
#include <cstring>
#include <optional>
#include <string>

#include "base/clean_text.h"
#include "runtime/src/backend/shm/segment.h"
#include "runtime/src/dtype.h"
#include "runtime/src/operation.h"
#include "runtime/src/words.h"

namespace drun::runtime {

// Digest of all fields of Segment::Call.
inline std::uint64_t digest_of(const Operation& operation) {
  const auto halves = [](std::uint32_t a, std::uint32_t b) { return std::uint64_t{a} << 32 | b; };
  const auto kinds = static_cast<std::uint32_t>(operation.kind) << 16 |
                     static_cast<std::uint32_t>(operation.dtype) << 8 | static_cast<std::uint32_t>(operation.op);
  // Two chains, which run in parallel.
  const std::uint64_t one = mixed(mixed(1, operation.seq ^ std::uint64_t{operation.names} << 32), operation.count);
  const std::uint64_t other = mixed(mixed(2, halves(operation.counts, operation.comm)),
                                    halves(static_cast<std::uint32_t>(operation.root), kinds));
  return mixed(one, other);
}

inline void write_call(const Operation& operation, Segment::Call& call) {
  call.seq = operation.seq;
  call.count = operation.count;
  call.counts = operation.counts;
  call.comm = operation.comm;
  call.root = operation.root;
  call.kind = static_cast<std::uint8_t>(operation.kind);
  call.dtype = static_cast<std::uint8_t>(operation.dtype);
  call.op = static_cast<std::uint8_t>(operation.op);
  call.names = operation.names;
  if (operation.names != 0) {
    char* at = call.name;
    for_words(operation.name, [&at](std::uint64_t word, std::size_t) {
      std::memcpy(at, &word, sizeof word);
      at += sizeof word;
    });
  }
}

// The members that same_call() compares. Leaves out the name, which only errors need (name_in()). Nothing if the bytes
// are no call: another process of the host may write anything there.
inline std::optional<Operation> read_call(const Segment::Call& call) {
  if (!is_kind(call.kind) || !is_dtype(call.dtype) || !is_op(call.op)) return std::nullopt;
  Operation operation;
  operation.kind = static_cast<OpKind>(call.kind);
  operation.dtype = static_cast<drun_dtype>(call.dtype);
  operation.op = static_cast<drun_op>(call.op);
  operation.comm = call.comm;
  operation.root = call.root;
  operation.seq = call.seq;
  operation.count = call.count;
  operation.counts = call.counts;
  operation.names = call.names;
  return operation;
}
inline std::string name_in(const Segment::Call& call) {
  return call.names != 0 ? clean_line({call.name, ::strnlen(call.name, kNameBytes)}) : std::string();
}

}  // namespace drun::runtime
