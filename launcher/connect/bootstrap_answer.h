// The answers of the remote command of bootstrap.h, amid the output of the host's rc files. Pure.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace drun::launcher {

struct BootstrapAnswer {
  enum Kind { kNone, kMagic, kCached, kNeed, kNeedGzip, kNeedZstd, kMachine, kNoPlace, kFull, kBroken } kind = kNone;
  std::size_t end = 0;  // end of the answer in the text
  std::string detail;   // the rest of its line
};

// The first answer in the host's output so far: the agent's magic, or a line of the script, marked with the nonce.
BootstrapAnswer find_bootstrap_answer(std::string_view text, const std::string& nonce);

}  // namespace drun::launcher
