// The command line of horovodrun, translated: `drun horovodrun -np 2 -H a:1,b:1 python3 train.py`. Pure.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"

namespace drun::cli {

struct Horovodrun {
  std::vector<std::string> args;     // for drun, with --compat horovod and the command
  std::vector<std::string> ignored;  // options that mean nothing to drun, as typed
};

// `args`: what follows `horovodrun`. Options end at the first word that is neither an option nor its value. Fails with
// Errc::kUsage for options of elastic jobs, for what drun can't do, and for unknown options. docs/migrating.md lists
// what becomes of each.
Result<Horovodrun> translate_horovodrun(const std::vector<std::string>& args);

}  // namespace drun::cli
