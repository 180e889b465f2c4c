// Mistakes in the words of the command that `drun run` starts.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "cli/job_options.h"
#include "launcher/plan/worker_env.h"

namespace drun::cli {

// No command, mpirun's ":", a mistyped subcommand, a host that a missing comma has made the command. Errors are
// Errc::kUsage, with what to type. `has_env_file`: --env-file was given, so the workers' PATH is not known here.
Result<void> check_command_words(const std::vector<std::string>& command, const RawJobOptions& raw, bool has_env_file,
                                 const launcher::Environment& own_env);

}  // namespace drun::cli
