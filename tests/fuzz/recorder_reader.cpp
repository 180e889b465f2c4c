// The flight recorder of a worker that writes anything into it.
#include "recorder/reader.h"

#include <algorithm>
#include <cstring>

#include "recorder/words.h"
#include "tests/fuzz/fuzz.h"

namespace drun::fuzz {
namespace {

using namespace recorder;

constexpr std::uint32_t kFew = 4;

void check(const Call& call) {
  const std::string name = name_of(call);
  expect(name.size() < kNameBytes, "a name ends");
  for (const char c : name)
    expect(static_cast<unsigned char>(c) >= 0x20 && c != 0x7f, "a name has no control characters");
  (void)call_text(call.kind, call.comm, call.seq, call.root, name);
  (void)dtype_text(call.dtype);
  (void)op_text(call.op);
  (void)(call.count * dtype_bytes(call.dtype));
  (void)(has_dtype(call.kind) && reduces(call.kind) && has_root(call.kind));
}

void run(std::string_view bytes) {
  alignas(64) char memory[bytes_for(kFew)] = {};
  std::memcpy(memory, bytes.data(), std::min(bytes.size(), sizeof memory));
  const Reader reader(memory, kFew);
  (void)reader.rank();
  const Standing standing = reader.standing();
  for (const auto& call : {standing.open, standing.last}) {
    if (!call) continue;
    expect(standing.n_begun - call->number < kFew, "the latest calls are shown");
    check(*call);
  }
  expect(!standing.open || standing.open->ended_ns == 0, "an open call has not ended");
  expect(!standing.last || standing.last->ended_ns != 0, "the last call has ended");
  for (std::uint64_t i = 0; i < kFew + 1; ++i) {
    if (const auto call = reader.call(standing.n_begun - i)) check(*call);
  }
}

std::vector<std::string> seeds() {
  std::string memory(bytes_for(kFew), '\0');
  const auto put = [&memory](std::size_t at, const auto& value) { std::memcpy(&memory[at], &value, sizeof value); };
  put(0, kMagic);
  put(64, std::uint64_t{5});  // n_begun
  for (std::uint64_t number = 2; number <= 5; ++number) {
    Call call;
    call.number = call.seq = number;
    call.kind = static_cast<std::uint8_t>(number);
    call.started_ns = 100;
    call.ended_ns = number < 4 ? 200 : 0;
    std::strcpy(call.name, "grad.17");
    put(sizeof(Header) + (number - 1) % kFew * sizeof(Entry) + sizeof(std::uint64_t), call);
  }
  return {memory, memory.substr(0, sizeof(Header))};
}

const Target kTarget("recorder_reader", run, seeds);

}  // namespace
}  // namespace drun::fuzz
