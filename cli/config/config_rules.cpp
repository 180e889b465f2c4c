#include "cli/config/config_rules.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace drun::cli {

namespace {

using Scope = ConfigScope;

constexpr std::string_view kWrites = "it names a file that drun writes";
constexpr std::string_view kLogsIn = "it chooses the key or the settings by which drun logs in";
constexpr std::string_view kRuns = "it chooses a program that drun runs";
constexpr std::string_view kLoads = "environment variables can make any program load other code";

constexpr ConfigRule kRules[] = {
    // Hosts
    {"--num-proc", Scope::kAnyFile, ""},
    {"--nproc-per-node", Scope::kAnyFile, ""},
    {"--oversubscribe", Scope::kAnyFile, ""},
    {"--bind-to", Scope::kAnyFile, ""},
    {"--hosts", Scope::kAnyFile, ""},
    {"--hostfile", Scope::kAnyFile, ""},
    {"--exclude", Scope::kCommandLine, ""},
    {"--ssh-port", Scope::kAnyFile, ""},
    {"--ssh-identity-file", Scope::kOwnFile, kLogsIn},
    {"--ssh-config", Scope::kOwnFile, kLogsIn},
    {"--transport", Scope::kAnyFile, ""},
    {"--launch-agent", Scope::kOwnFile, kRuns},
    {"--agent-path", Scope::kOwnFile, kRuns},
    // Network
    {"--network-interfaces", Scope::kAnyFile, ""},
    {"--no-cache", Scope::kAnyFile, ""},
    {"--check", Scope::kAnyFile, ""},
    // Environment
    {"-x", Scope::kOwnFile, kLoads},
    {"--env-file", Scope::kOwnFile, kLoads},
    {"--env", Scope::kAnyFile, ""},
    {"--wdir", Scope::kOwnFile, "it chooses which program a relative path means"},
    {"--mpi", Scope::kAnyFile, ""},
    {"--compat", Scope::kAnyFile, ""},
    // Input and output
    {"--stdin", Scope::kAnyFile, ""},
    {"--output-filename", Scope::kOwnFile, kWrites},
    {"--tag-output", Scope::kAnyFile, ""},
    {"--no-tag-output", Scope::kAnyFile, ""},
    {"--timestamp-output", Scope::kAnyFile, ""},
    {"--merge-stderr-to-stdout", Scope::kAnyFile, ""},
    {"--ranks", Scope::kAnyFile, ""},
    {"--pty", Scope::kAnyFile, ""},
    // Time limits
    {"--timeout", Scope::kAnyFile, ""},
    {"--stack-timeout", Scope::kAnyFile, ""},
    {"--stall-timeout", Scope::kAnyFile, ""},
    {"--grace", Scope::kAnyFile, ""},
    {"--heartbeat-timeout", Scope::kAnyFile, ""},
    {"--start-timeout", Scope::kAnyFile, ""},
    // Reports
    {"--dry-run", Scope::kCommandLine, ""},
    {"--explain-env", Scope::kCommandLine, ""},
    {"--json", Scope::kCommandLine, ""},
    {"--verbose", Scope::kAnyFile, ""},
    {"--log-file", Scope::kOwnFile, kWrites},
    {"--report", Scope::kOwnFile, kWrites},
    {"--events", Scope::kOwnFile, kWrites},
    {"--timeline", Scope::kOwnFile, kWrites},
    // Other options
    {"--help", Scope::kCommandLine, ""},
    {"--version", Scope::kCommandLine, ""},
    {"--check-build", Scope::kCommandLine, ""},
    {"--config", Scope::kCommandLine, ""},
    // Only of drun check
    {"--quick", Scope::kAnyFile, ""},
    {"--full", Scope::kAnyFile, ""},
    {"--for", Scope::kAnyFile, ""},
    {"--max-rate", Scope::kAnyFile, ""},
    {"--gradient-size", Scope::kAnyFile, ""},
    {"--model-params", Scope::kAnyFile, ""},
    {"--dtype", Scope::kAnyFile, ""},
    {"--step-time", Scope::kAnyFile, ""},
    {"--baseline", Scope::kAnyFile, ""},
    {"--save-baseline", Scope::kOwnFile, kWrites},
    {"--html", Scope::kOwnFile, kWrites},
    {"--strict", Scope::kAnyFile, ""},
    // Only of drun init
    {"--from", Scope::kCommandLine, ""},
    {"--output", Scope::kCommandLine, ""},
    {"--force", Scope::kCommandLine, ""},
    // Only of drun bench
    {"-o", Scope::kCommandLine, ""},
    {"--minbytes", Scope::kAnyFile, ""},
    {"--maxbytes", Scope::kAnyFile, ""},
    {"--stepfactor", Scope::kAnyFile, ""},
    {"--stepbytes", Scope::kAnyFile, ""},
    {"--iters", Scope::kAnyFile, ""},
    {"--warmup_iters", Scope::kAnyFile, ""},
    {"--datatype", Scope::kAnyFile, ""},
    {"--redop", Scope::kAnyFile, ""},
    {"--root", Scope::kAnyFile, ""},
    {"--backend", Scope::kAnyFile, ""},
    {"--local_register", Scope::kAnyFile, ""},
    // Only of drun clean: a file must not make it end processes.
    {"--job", Scope::kCommandLine, ""},
    {"--yes", Scope::kCommandLine, ""},
    {"--all-users", Scope::kCommandLine, ""},
};

// Two ways to say one thing: {given, what it replaces}.
constexpr std::pair<std::string_view, std::string_view> kReplaced[] = {
    {"--hosts", "--hostfile"},
    {"--hostfile", "--hosts"},
    {"--tag-output", "--no-tag-output"},
    {"--no-tag-output", "--tag-output"},
    {"--quick", "--full"},
    {"--full", "--quick"},
    {"--gradient-size", "--model-params"},
    {"--gradient-size", "--dtype"},
    {"--model-params", "--gradient-size"},
};

}  // namespace

std::span<const ConfigRule> config_rules() { return kRules; }

std::string option_of_key(std::string_view key) {
  if (key == "np") return "--num-proc";
  return (key.size() == 1 ? "-" : "--") + std::string(key);
}

const ConfigRule* find_rule(std::string_view key) {
  const std::string option = option_of_key(key);
  const auto found = std::find_if(std::begin(kRules), std::end(kRules),
                                  [&option](const ConfigRule& rule) { return rule.option == option; });
  return found == std::end(kRules) ? nullptr : &*found;
}

std::vector<std::string> config_keys() {
  std::vector<std::string> out = {"np"};
  for (const auto& rule : kRules) {
    if (rule.scope != Scope::kCommandLine) out.emplace_back(rule.option.substr(rule.option.find_first_not_of('-')));
  }
  return out;
}

// `-c, --check` of drun bench is a number of calls.
bool is_other_option(std::string_view command, std::string_view option) {
  return command == "bench" && option == "--check";
}

std::vector<std::string> replaced_by(std::string_view option) {
  std::vector<std::string> out;
  for (const auto& [given, replaced] : kReplaced) {
    if (given == option) out.emplace_back(replaced);
  }
  return out;
}

}  // namespace drun::cli
