#include "cli/horovodrun.h"

#include <algorithm>
#include <string_view>

#include "base/text.h"
#include "cli/usage.h"

namespace drun::cli {

namespace {

enum class Becomes {
  kOption,   // drun's option `word`, with the value
  kFlag,     // drun's arguments `word`, without a value
  kNothing,  // it tunes Horovod's own library or controller
  kError,    // `word` is the hint
};

struct Option {
  std::string_view names;  // separated by spaces
  int n_values;
  Becomes becomes;
  std::string_view word;
};

constexpr const char* kElastic = "a job of drun has the ranks that it began with; start it again from a checkpoint";

constexpr Option kOptions[] = {
    {"-np --num-proc", 1, Becomes::kOption, "-np"},
    {"-H --hosts", 1, Becomes::kOption, "-H"},
    {"-hostfile --hostfile", 1, Becomes::kOption, "--hostfile"},
    {"-p --ssh-port", 1, Becomes::kOption, "-p"},
    {"-i --ssh-identity-file", 1, Becomes::kOption, "-i"},
    {"--network-interfaces --network-interface", 1, Becomes::kOption, "--network-interfaces"},
    {"--output-filename", 1, Becomes::kOption, "--output-filename"},
    {"--start-timeout", 1, Becomes::kOption, "--start-timeout"},
    {"--timeline-filename", 1, Becomes::kOption, "--timeline"},
    {"--stall-check-warning-time-seconds", 1, Becomes::kOption, "--stall-timeout"},
    {"-v --version", 0, Becomes::kFlag, "--version"},
    {"-h --help", 0, Becomes::kFlag, "--help"},
    {"-cb --check-build", 0, Becomes::kFlag, "--check-build"},
    {"--verbose", 0, Becomes::kFlag, "-v"},
    {"--disable-cache", 0, Becomes::kFlag, "--no-cache"},
    {"--prefix-output-with-timestamp -prefix-timestamp", 0, Becomes::kFlag, "--timestamp-output"},
    {"--no-stall-check", 0, Becomes::kFlag, "--stall-timeout 0"},
    {"--tcp", 0, Becomes::kFlag, "-x NCCL_IB_DISABLE=1"},
    {"--gloo --mpi --jsrun --stall-check --timeline-mark-cycles --no-timeline-mark-cycles --mpi-threads-disable "
     "--no-mpi-threads-disable --hierarchical-allreduce --no-hierarchical-allreduce --hierarchical-allgather "
     "--no-hierarchical-allgather --torus-allreduce --no-torus-allreduce --autotune --no-autotune "
     "--log-with-timestamp --log-without-timestamp --log-hide-timestamp --no-log-hide-timestamp",
     0, Becomes::kNothing, ""},
    {"--fusion-threshold-mb --cycle-time-ms --cache-capacity --autotune-log-file --autotune-warmup-samples "
     "--autotune-steps-per-sample --autotune-bayes-opt-max-samples --autotune-gaussian-process-noise "
     "--num-nccl-streams --gloo-timeout-seconds --log-level --stall-check-shutdown-time-seconds",
     1, Becomes::kNothing, ""},
    {"--min-np --min-num-proc --max-np --max-num-proc --slots-per-host --slots --elastic-timeout --reset-limit "
     "--blacklist-cooldown-range --host-discovery-script",
     0, Becomes::kError, kElastic},
    {"--config-file", 0, Becomes::kError, "give its options here, or as TOML to drun run --config"},
    {"--mpi-args --binding-args --thread-affinity", 0, Becomes::kError, "--bind-to core of drun run binds the workers"},
};

bool has_name(const Option& option, std::string_view name) {
  const auto names = split(option.names, ' ');
  return std::find(names.begin(), names.end(), name) != names.end();
}

const Option* find_option(std::string_view name) {
  const auto found = std::find_if(std::begin(kOptions), std::end(kOptions),
                                  [name](const Option& option) { return has_name(option, name); });
  return found == std::end(kOptions) ? nullptr : found;
}

}  // namespace

Result<Horovodrun> translate_horovodrun(const std::vector<std::string>& args) {
  Horovodrun out;
  // horovodrun reads no such file: its users would be surprised by one.
  out.args = {"run", "--compat", "horovod", "--config", "none"};
  std::size_t at = 0;
  while (at < args.size() && args[at].size() > 1 && args[at][0] == '-' && args[at] != "--") {
    const std::string& typed = args[at++];
    const auto equals = typed.find('=');
    const std::string name = typed.substr(0, equals);
    const Option* const option = find_option(name);
    if (option == nullptr) {
      return fail(
          usage_error("horovodrun " + name, "not an option of horovodrun", "drun run --help lists those of drun"));
    }
    if (option->becomes == Becomes::kError) {
      return fail(usage_error("horovodrun " + name, "drun can't do that", std::string(option->word)));
    }
    std::string value;
    if (option->n_values > 0) {
      if (equals == std::string::npos && at == args.size())
        return fail(usage_error("horovodrun " + name, "its value is missing"));
      value = equals == std::string::npos ? args[at++] : typed.substr(equals + 1);
    }
    if (option->becomes == Becomes::kNothing) {
      out.ignored.push_back(name);
    } else {
      for (const auto word : split(option->word, ' ')) out.args.emplace_back(word);
      if (option->becomes == Becomes::kOption) out.args.push_back(value);
    }
  }
  if (at < args.size() && args[at] != "--") out.args.emplace_back("--");
  out.args.insert(out.args.end(), args.begin() + static_cast<std::ptrdiff_t>(at), args.end());
  return out;
}

}  // namespace drun::cli
