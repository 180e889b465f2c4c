#include "cli/horovodrun.h"

#include <algorithm>
#include <string_view>

#include "base/error_id.h"
#include "base/text.h"
#include "cli/usage.h"

namespace drun::cli {

namespace {

enum class Becomes {
  kOption,   // drun's option `word`, with the value
  kFlag,     // drun's arguments `word`, without a value
  kNothing,  // it tunes Horovod's own library or controller
  kError,    // `word` is the hint
  kFile,     // it names a file of options
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
    {"--config-file", 1, Becomes::kFile, ""},
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

// An option that was given, on the command line or by a file.
struct Given {
  const Option* option = nullptr;
  std::string name;  // for messages: as typed, or the file's key
  std::string value;
  bool is_of_file = false;
};

// The first of drun's words that stand for it: "--stall-timeout".
std::string_view drun_option(const Option& option) { return split(option.word, ' ').front(); }

bool is_of_drun(const Option& option) { return option.becomes == Becomes::kOption || option.becomes == Becomes::kFlag; }

// True if `other` makes `one` void: the command line wins over a file, and --no-stall-check over its time.
bool is_replaced(const Given& one, const Given& other) {
  const bool is_same = one.option == other.option || (is_of_drun(*one.option) && is_of_drun(*other.option) &&
                                                      drun_option(*one.option) == drun_option(*other.option));
  if (!is_same) return false;
  if (one.is_of_file != other.is_of_file) return one.is_of_file;
  return one.option->becomes == Becomes::kOption && other.option->becomes == Becomes::kFlag;
}

void append_words(const Given& given, std::vector<std::string>& out) {
  for (const auto word : split(given.option->word, ' ')) out.emplace_back(word);
  if (given.option->becomes == Becomes::kOption) out.push_back(given.value);
}

Error refusal(const Given& given) {
  return usage_error("horovodrun " + given.name, "drun can't do that", std::string(given.option->word));
}

// Adds the settings of the file, before those of the command line. Keys that horovodrun ignores go to `ignored`.
Result<void> add_file(const std::string& path, const TextReader& read, std::vector<Given>& given,
                      std::vector<std::string>& ignored) {
  const auto text = read(path);
  if (!text) return fail(usage_error("horovodrun --config-file", text.error().message()));
  const auto settings = parse_horovodrun_file(*text, path);
  if (!settings) return fail(Error(settings.error()).with_id(error_id::kConfigFile));
  std::vector<Given> added;
  for (const auto& [key, option, value] : *settings) {
    if (option.empty()) {
      ignored.push_back(key);
    } else {
      added.push_back({find_option(option), path + ": " + key, value, true});
    }
  }
  given.insert(given.begin(), added.begin(), added.end());
  return {};
}

// The options at the begin of `args`; `at` becomes the index of the first word after them.
Result<std::vector<Given>> read_options(const std::vector<std::string>& args, std::size_t& at) {
  std::vector<Given> out;
  while (at < args.size() && args[at].size() > 1 && args[at][0] == '-' && args[at] != "--") {
    const std::string& typed = args[at++];
    const auto equals = typed.find('=');
    Given given;
    given.name = typed.substr(0, equals);
    given.option = find_option(given.name);
    if (given.option == nullptr) {
      return fail(usage_error("horovodrun " + given.name, "not an option of horovodrun",
                              "drun run --help lists those of drun"));
    }
    if (given.option->becomes == Becomes::kError) return fail(refusal(given));
    if (given.option->n_values > 0) {
      if (equals == std::string::npos && at == args.size())
        return fail(usage_error("horovodrun " + given.name, "its value is missing"));
      given.value = equals == std::string::npos ? args[at++] : typed.substr(equals + 1);
    }
    out.push_back(std::move(given));
  }
  return out;
}

}  // namespace

Result<Horovodrun> translate_horovodrun(const std::vector<std::string>& args, const TextReader& read) {
  Horovodrun out;
  // horovodrun reads no such file: its users would be surprised by one.
  out.args = {"run", "--compat", "horovod", "--config", "none"};
  std::size_t at = 0;
  auto typed = read_options(args, at);
  if (!typed) return fail(std::move(typed.error()));
  std::vector<Given> given = *typed;
  for (const Given& one : *typed) {
    if (one.option->becomes != Becomes::kFile) continue;
    if (auto ok = add_file(one.value, read, given, out.ignored); !ok) return fail(std::move(ok.error()));
  }
  for (const Given& one : given) {
    const bool is_void =
        std::any_of(given.begin(), given.end(), [&one](const Given& other) { return is_replaced(one, other); });
    if (is_void || one.option->becomes == Becomes::kFile) continue;
    if (one.option->becomes == Becomes::kError) return fail(refusal(one));
    if (one.option->becomes == Becomes::kNothing) {
      out.ignored.push_back(one.name);
    } else {
      append_words(one, out.args);
    }
  }
  if (at < args.size() && args[at] != "--") out.args.emplace_back("--");
  out.args.insert(out.args.end(), args.begin() + static_cast<std::ptrdiff_t>(at), args.end());
  return out;
}

HorovodFile translate_settings(const std::vector<HorovodSetting>& settings) {
  HorovodFile out;
  out.args = {"--compat", "horovod"};
  std::vector<Given> given;
  for (const auto& [key, option, value] : settings) {
    if (option.empty()) {
      out.left_out.push_back({key, "horovodrun ignores it, too"});
    } else {
      given.push_back({find_option(option), key, value, true});
    }
  }
  for (const Given& one : given) {
    const auto replaced =
        std::find_if(given.begin(), given.end(), [&one](const Given& other) { return is_replaced(one, other); });
    if (replaced != given.end()) {
      out.left_out.push_back({one.name, replaced->name + " says otherwise"});
    } else if (one.option->becomes == Becomes::kNothing) {
      out.left_out.push_back({one.name, "it tunes Horovod's own library"});
    } else if (one.option->becomes == Becomes::kError) {
      out.left_out.push_back({one.name, "drun can't do that; " + std::string(one.option->word)});
    } else {
      append_words(one, out.args);
    }
  }
  return out;
}

}  // namespace drun::cli
