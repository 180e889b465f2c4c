// The command line of horovodrun, translated: `drun horovodrun -np 2 -H a:1,b:1 python3 train.py`. Pure.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/error.h"
#include "cli/horovodrun_file.h"

namespace drun::cli {

struct Horovodrun {
  bool is_real = false;              // --compat real-horovod
  std::vector<std::string> args;     // for drun, with --compat and the command
  std::vector<std::string> ignored;  // options that mean nothing to drun, as typed
};

// Reads a whole file.
using TextReader = std::function<Result<std::string>(const std::string& path)>;

// The hosts of a command line that names none.
enum class UnnamedHosts {
  kThisMachine,  // with -np slots, as horovodrun does, also in a batch job of Slurm
  kBatchJob,     // those of the batch job, as horovodrun does under LSF
};

// `args`: what follows `horovodrun`; drun's `--compat real-horovod` may come first, and then options that tune
// Horovod's library become its variables. Options end at the first word that is neither an option nor its value; those
// of the command line win over those of the file of --config-file, and the last of equal ones over the others. Fails
// with Errc::kUsage for options of elastic jobs, for what drun can't do, and for unknown options. docs/migrating.md
// lists what becomes of each.
Result<Horovodrun> translate_horovodrun(const std::vector<std::string>& args, const TextReader& read,
                                        UnnamedHosts unnamed);

// A file of --config-file as options of drun.
struct HorovodFile {
  std::vector<std::string> args;  // for drun run, --compat horovod included
  struct LeftOut {
    std::string key;  // "params.cycle_time_ms"
    std::string reason;
  };
  std::vector<LeftOut> left_out;
};
HorovodFile translate_settings(const std::vector<HorovodSetting>& settings);

}  // namespace drun::cli
