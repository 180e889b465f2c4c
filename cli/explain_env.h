// `--explain-env RANK`: the environment that a worker would get, and why. Starts nothing.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "cli/options.h"
#include "launcher/plan/env_origins.h"

namespace drun::cli {

struct ExplainedRank {
  int rank = 0;
  std::string host;
  int local_rank = 0, local_size = 0;
  std::vector<launcher::EnvVariable> variables;
};

// The rank of `options.explained_rank`. Errors are Errc::kUsage: there is no such rank, or the ssh config, which tells
// whether a host is this machine, has a fault.
Result<ExplainedRank> explain_rank(const Options& options);

// Two lines for each variable. Values of secrets are hidden in both forms.
std::string explained_text(const ExplainedRank& explained);
std::string explained_json(const ExplainedRank& explained);

}  // namespace drun::cli
