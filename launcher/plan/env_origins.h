// The environment of one worker before it is started, with the reason for each variable. Pure. The values are those of
// worker_env.h, so that both can't differ.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "launcher/plan/placement.h"
#include "launcher/plan/worker_env.h"

namespace drun::launcher {

struct EnvVariable {
  std::string name;
  std::optional<std::string> value;  // nothing: only known when the job starts
  std::string source;                // "-x", "--env-file job.env", "drun", "environment of drun"
  std::string reason;
};

struct EnvQuestion {
  RankPlace place;
  int size = 0;
  int n_hosts = 0;
  std::string host;
  bool is_head = false;  // `host` runs drun
  bool has_terminal = false;
  bool is_bound = false;
  std::string working_directory;
  std::string exports_source;   // "-x", or the file that has them
  std::string env_file_source;  // "--env-file job.env"
};

// Sorted by name.
std::vector<EnvVariable> explain_environment(const EnvQuestion& question, const EnvRequest& request,
                                             const Environment& own);

// True if a value should not be shown on a screen: by the name, as of tokens and keys, or because the value is an
// address with a password.
bool is_secret(const std::string& name, const std::string& value);

}  // namespace drun::launcher
