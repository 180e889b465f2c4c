// libFuzzer's entry to the only target of a program.
#include "tests/fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t n_bytes) {
  drun::fuzz::targets().front()->run({reinterpret_cast<const char*>(data), n_bytes});
  return 0;
}
