#include "cli/explain_env.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "base/clean_text.h"
#include "base/json_text.h"
#include "base/text.h"
#include "cli/usage.h"
#include "launcher/connect/locality.h"
#include "launcher/plan/placement.h"

namespace drun::cli {

namespace {

constexpr const char* kHidden = "hidden";
constexpr const char* kAtStart = "set when the job starts";

// "drun.toml:3: 'x'" if a file has the option, else the option as typed.
std::string source_of(const ConfigSources& config, const std::string& option, const std::string& typed) {
  const auto place = config.places.find(option);
  return place == config.places.end() ? typed : place->second;
}

bool is_hidden(const launcher::EnvVariable& variable) {
  return variable.value && launcher::is_secret(variable.name, *variable.value);
}

}  // namespace

Result<ExplainedRank> explain_rank(const Options& options) {
  const launcher::JobOptions& job = options.job;
  const auto placed = launcher::place(job.hosts, job.np);
  if (!placed) return fail(placed.error());
  const int rank = options.explained_rank.value_or(0);
  if (rank < 0 || rank >= placed->size) {
    return fail(usage_error("--explain-env",
                            "there is no rank " + std::to_string(rank) + " among " +
                                plural(static_cast<std::size_t>(placed->size), "worker"),
                            "--explain-env " + std::to_string(placed->size - 1)));
  }
  launcher::EnvQuestion question;
  question.place = placed->ranks[static_cast<std::size_t>(rank)];
  const auto index = static_cast<std::size_t>(question.place.host);
  const Host& host = job.hosts[static_cast<std::size_t>(placed->host_indices[index])];
  const auto target = transport::resolve_ssh_target(host, job.connect.ssh);
  if (!target) return fail(target.error());
  question.size = placed->size;
  question.n_hosts = static_cast<int>(placed->host_indices.size());
  question.host = host.name;
  question.is_head = launcher::is_local(host, *target, launcher::own_identity());
  question.has_terminal = job.pty;
  question.is_bound = job.bind_to != control::BindTo::kNone;
  question.working_directory = job.working_directory;
  question.exports_source = source_of(options.config, "-x", "-x");
  question.env_file_source = source_of(options.config, "--env-file", "--env-file " + options.env_file);
  ExplainedRank out;
  out.rank = rank;
  out.host = host.name;
  out.local_rank = question.place.local_rank;
  out.local_size = question.place.local_size;
  out.variables = launcher::explain_environment(question, job.env, job.own_env);
  return out;
}

std::string explained_text(const ExplainedRank& explained) {
  std::string out = "rank " + std::to_string(explained.rank) + " on " + explained.host + ", local rank " +
                    std::to_string(explained.local_rank) + " of " + std::to_string(explained.local_size) + ":\n";
  for (const auto& variable : explained.variables) {
    out += "  " + variable.name;
    if (!variable.value) {
      out += std::string(" (") + kAtStart + ")";
    } else if (is_hidden(variable)) {
      out += std::string("=... (") + kHidden + ")";
    } else {
      out += "=" + clean_line(shell_quote(*variable.value));
    }
    out = std::move(out) + "\n      " + variable.source + ": " + variable.reason + "\n";
  }
  return clean_text(out);
}

std::string explained_json(const ExplainedRank& explained) {
  nlohmann::ordered_json out;
  out["schema"] = 1;
  out["rank"] = explained.rank;
  out["host"] = explained.host;
  out["local_rank"] = explained.local_rank;
  out["local_size"] = explained.local_size;
  out["variables"] = nlohmann::ordered_json::array();
  for (const auto& variable : explained.variables) {
    const bool hides = is_hidden(variable);
    nlohmann::ordered_json one;
    one["name"] = variable.name;
    one["value"] = variable.value && !hides ? nlohmann::ordered_json(*variable.value) : nlohmann::ordered_json(nullptr);
    one["state"] = hides ? "hidden" : variable.value ? "known" : "set at the start";
    one["source"] = variable.source;
    one["reason"] = variable.reason;
    out["variables"].push_back(std::move(one));
  }
  return json_text(out, 2) + "\n";
}

}  // namespace drun::cli
