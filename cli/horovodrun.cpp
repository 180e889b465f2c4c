#include "cli/horovodrun.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

#include "base/error_id.h"
#include "base/text.h"
#include "cli/usage.h"

namespace drun::cli {

namespace {

enum class Becomes {
  kOption,      // drun's option `word`, with the value
  kFlag,        // drun's arguments `word`, without a value
  kNothing,     // it tunes Horovod's own library
  kController,  // it chooses Horovod's controller; with a hint, one that drun can't start
  kError,       // `word` is the hint
  kFile,        // it names a file of options
};

enum class Value { kTyped, kBytes, kZero, kOne };  // kBytes: MiB were typed

struct KnownOption {
  std::string_view names;  // separated by spaces
  int n_values;
  Becomes becomes;
  std::string_view word;
  // With --compat real-horovod: the variable by which horovodrun passes it to the library. "" = as without it.
  std::string_view variable = "";
  Value value = Value::kTyped;
};

constexpr const char* kElastic = "a job of drun has the ranks that it began with; start it again from a checkpoint";
constexpr const char* kBinding = "--bind-to core of drun run binds the workers";

constexpr KnownOption kOptions[] = {
    {"-np --num-proc", 1, Becomes::kOption, "-np"},
    {"-H --hosts", 1, Becomes::kOption, "-H"},
    {"-hostfile --hostfile", 1, Becomes::kOption, "--hostfile"},
    {"-p --ssh-port", 1, Becomes::kOption, "-p"},
    {"-i --ssh-identity-file", 1, Becomes::kOption, "-i"},
    {"--network-interfaces --network-interface", 1, Becomes::kOption, "--network-interfaces"},
    {"--output-filename", 1, Becomes::kOption, "--output-filename"},
    {"--start-timeout", 1, Becomes::kOption, "--start-timeout"},
    {"-v --version", 0, Becomes::kFlag, "--version"},
    {"-h --help", 0, Becomes::kFlag, "--help"},
    {"-cb --check-build", 0, Becomes::kFlag, "--check-build"},
    {"--verbose", 0, Becomes::kFlag, "-v"},
    {"--disable-cache", 0, Becomes::kFlag, "--no-cache"},
    {"--prefix-output-with-timestamp -prefix-timestamp", 0, Becomes::kFlag, "--timestamp-output"},
    {"--tcp", 0, Becomes::kFlag, "-x NCCL_IB_DISABLE=1"},
    {"--gloo", 0, Becomes::kController, ""},
    {"--mpi --jsrun", 0, Becomes::kController, "leave it out"},

    {"--timeline-filename", 1, Becomes::kOption, "--timeline", "HOROVOD_TIMELINE"},
    {"--timeline-mark-cycles", 0, Becomes::kNothing, "", "HOROVOD_TIMELINE_MARK_CYCLES", Value::kOne},
    {"--no-timeline-mark-cycles", 0, Becomes::kNothing, "", "HOROVOD_TIMELINE_MARK_CYCLES", Value::kZero},
    {"--stall-check-warning-time-seconds", 1, Becomes::kOption, "--stall-timeout", "HOROVOD_STALL_CHECK_TIME_SECONDS"},
    {"--stall-check-shutdown-time-seconds", 1, Becomes::kNothing, "", "HOROVOD_STALL_SHUTDOWN_TIME_SECONDS"},
    {"--no-stall-check", 0, Becomes::kFlag, "--stall-timeout 0", "HOROVOD_STALL_CHECK_DISABLE", Value::kOne},
    {"--stall-check", 0, Becomes::kNothing, "", "HOROVOD_STALL_CHECK_DISABLE", Value::kZero},
    {"--mpi-threads-disable", 0, Becomes::kNothing, "", "HOROVOD_MPI_THREADS_DISABLE", Value::kOne},
    {"--no-mpi-threads-disable", 0, Becomes::kNothing, "", "HOROVOD_MPI_THREADS_DISABLE", Value::kZero},
    {"--hierarchical-allreduce", 0, Becomes::kNothing, "", "HOROVOD_HIERARCHICAL_ALLREDUCE", Value::kOne},
    {"--no-hierarchical-allreduce", 0, Becomes::kNothing, "", "HOROVOD_HIERARCHICAL_ALLREDUCE", Value::kZero},
    {"--hierarchical-allgather", 0, Becomes::kNothing, "", "HOROVOD_HIERARCHICAL_ALLGATHER", Value::kOne},
    {"--no-hierarchical-allgather", 0, Becomes::kNothing, "", "HOROVOD_HIERARCHICAL_ALLGATHER", Value::kZero},
    {"--torus-allreduce", 0, Becomes::kNothing, "", "HOROVOD_TORUS_ALLREDUCE", Value::kOne},
    {"--no-torus-allreduce", 0, Becomes::kNothing, "", "HOROVOD_TORUS_ALLREDUCE", Value::kZero},
    {"--autotune", 0, Becomes::kNothing, "", "HOROVOD_AUTOTUNE", Value::kOne},
    {"--no-autotune", 0, Becomes::kNothing, "", "HOROVOD_AUTOTUNE", Value::kZero},
    {"--autotune-log-file", 1, Becomes::kNothing, "", "HOROVOD_AUTOTUNE_LOG"},
    {"--autotune-warmup-samples", 1, Becomes::kNothing, "", "HOROVOD_AUTOTUNE_WARMUP_SAMPLES"},
    {"--autotune-steps-per-sample", 1, Becomes::kNothing, "", "HOROVOD_AUTOTUNE_STEPS_PER_SAMPLE"},
    {"--autotune-bayes-opt-max-samples", 1, Becomes::kNothing, "", "HOROVOD_AUTOTUNE_BAYES_OPT_MAX_SAMPLES"},
    {"--autotune-gaussian-process-noise", 1, Becomes::kNothing, "", "HOROVOD_AUTOTUNE_GAUSSIAN_PROCESS_NOISE"},
    {"--log-level", 1, Becomes::kNothing, "", "HOROVOD_LOG_LEVEL"},
    {"--log-with-timestamp --no-log-hide-timestamp", 0, Becomes::kNothing, "", "HOROVOD_LOG_HIDE_TIME", Value::kZero},
    {"--log-without-timestamp --log-hide-timestamp", 0, Becomes::kNothing, "", "HOROVOD_LOG_HIDE_TIME", Value::kOne},
    {"--fusion-threshold-mb", 1, Becomes::kNothing, "", "HOROVOD_FUSION_THRESHOLD", Value::kBytes},
    {"--cycle-time-ms", 1, Becomes::kNothing, "", "HOROVOD_CYCLE_TIME"},
    {"--cache-capacity", 1, Becomes::kNothing, "", "HOROVOD_CACHE_CAPACITY"},
    {"--num-nccl-streams", 1, Becomes::kNothing, "", "HOROVOD_NUM_NCCL_STREAMS"},
    {"--gloo-timeout-seconds", 1, Becomes::kNothing, "", "HOROVOD_GLOO_TIMEOUT_SECONDS"},
    {"--thread-affinity", 1, Becomes::kError, kBinding, "HOROVOD_THREAD_AFFINITY"},

    {"--min-np --min-num-proc --max-np --max-num-proc --slots-per-host --slots --elastic-timeout --reset-limit "
     "--blacklist-cooldown-range --host-discovery-script",
     1, Becomes::kError, kElastic},
    {"--config-file", 1, Becomes::kFile, ""},
    {"--mpi-args --binding-args", 1, Becomes::kError, kBinding},
};

bool has_name(const KnownOption& option, std::string_view name) {
  const auto names = split(option.names, ' ');
  return std::find(names.begin(), names.end(), name) != names.end();
}

const KnownOption* find_option(std::string_view name) {
  const auto found = std::find_if(std::begin(kOptions), std::end(kOptions),
                                  [name](const KnownOption& option) { return has_name(option, name); });
  return found == std::end(kOptions) ? nullptr : found;
}

tl::unexpected<Error> refuse(const std::string& name, const std::string& cause, const std::string& hint = "") {
  return fail(usage_error("horovodrun " + name, cause, hint));
}

// The value of -x for the library of a real Horovod.
Result<std::string> assignment(const KnownOption& option, const std::string& name, const std::string& typed) {
  std::string value = typed;
  if (option.value == Value::kZero) value = "0";
  if (option.value == Value::kOne) value = "1";
  if (option.value == Value::kBytes) {
    const auto n_mib = parse_number(typed);
    if (!n_mib || *n_mib > 1u << 20) return refuse(name, "'" + typed + "' is not a number of MB");
    value = std::to_string(*n_mib << 20);
  }
  return std::string(option.variable) + "=" + value;
}

// An option that was given, on the command line or by a file.
struct Given {
  const KnownOption* option = nullptr;
  std::string name;  // for messages: as typed, or the file's key
  std::string value;
  bool is_of_file = false;
};

// The thing that the option sets: a variable of a real Horovod, its controller, or an option of drun,
// "--stall-timeout"; "" = none.
std::string_view target_of(const KnownOption& option, bool is_real) {
  if (option.becomes == Becomes::kController) return "controller";
  if (is_real && !option.variable.empty()) return option.variable;
  const bool is_of_drun = option.becomes == Becomes::kOption || option.becomes == Becomes::kFlag;
  return is_of_drun ? split(option.word, ' ').front() : std::string_view();
}

// True if `other` makes `one` void: the command line wins over a file, --no-stall-check over its time, and the last of
// several options that set the same. Both are elements of one array.
bool is_replaced(const Given& one, const Given& other, bool is_real) {
  const auto target = target_of(*one.option, is_real);
  const bool is_same = one.option == other.option || (!target.empty() && target == target_of(*other.option, is_real));
  if (!is_same) return false;
  if (one.is_of_file != other.is_of_file) return one.is_of_file;
  if (one.option->becomes == Becomes::kOption && other.option->becomes == Becomes::kFlag) return true;
  return &one < &other && one.option->becomes == other.option->becomes && one.option->becomes != Becomes::kController;
}

void append_words(const Given& given, std::vector<std::string>& out) {
  for (const auto word : split(given.option->word, ' ')) out.emplace_back(word);
  if (given.option->becomes == Becomes::kOption) out.push_back(given.value);
}

Result<void> add_given(const Given& given, Horovodrun& out) {
  const KnownOption& option = *given.option;
  if (out.is_real && !option.variable.empty()) {
    auto word = assignment(option, given.name, given.value);
    if (!word) return fail(std::move(word.error()));
    out.args.emplace_back("-x");
    out.args.push_back(std::move(*word));
    return {};
  }
  switch (option.becomes) {
    case Becomes::kError:
      return refuse(given.name, "drun can't do that", std::string(option.word));
    case Becomes::kController:
      if (out.is_real && !option.word.empty())
        return refuse(given.name, "drun starts Horovod's Gloo controller", std::string(option.word));
      [[fallthrough]];
    case Becomes::kNothing:
      if (!out.is_real) out.ignored.push_back(given.name);
      return {};
    case Becomes::kOption:
    case Becomes::kFlag:
      append_words(given, out.args);
      return {};
    case Becomes::kFile:
      return {};
  }
  return {};
}

// Adds the settings of the file to `given`. Keys that horovodrun ignores go to `ignored`.
Result<void> add_file(const std::string& path, const TextReader& read, std::vector<Given>& given,
                      std::vector<std::string>& ignored) {
  const auto text = read(path);
  if (!text) return refuse("--config-file", text.error().message());
  const auto settings = parse_horovodrun_file(*text, path);
  if (!settings) return fail(Error(settings.error()).with_id(error_id::kConfigFile));
  for (const auto& [key, option, value] : *settings) {
    if (option.empty()) {
      ignored.push_back(key);
    } else {
      given.push_back({find_option(option), path + ": " + key, value, true});
    }
  }
  return {};
}

// An option as it is typed, and the words after it.
struct Typed {
  std::string name;
  std::optional<std::string> value;  // behind '='
};

Typed typed_option(const std::string& word) {
  const auto equals = word.find('=');
  Typed out = {word.substr(0, equals), std::nullopt};
  if (equals != std::string::npos) out.value = word.substr(equals + 1);
  if (find_option(out.name) != nullptr || starts_with(word, "--")) return out;
  const KnownOption* letter = find_option(word.substr(0, 2));
  if (letter != nullptr && letter->n_values > 0) out = {word.substr(0, 2), word.substr(2)};  // -Hlocalhost:2
  return out;
}

bool is_option(const std::string& word) { return word.size() > 1 && word[0] == '-' && word != "--"; }

// The options from `at` on; `at` becomes the index of the first word after them.
Result<std::vector<Given>> read_options(const std::vector<std::string>& args, std::size_t& at) {
  std::vector<Given> out;
  while (at < args.size() && is_option(args[at])) {
    const auto typed = typed_option(args[at++]);
    if (typed.name == "--compat") return refuse(typed.name, "it comes first", "drun horovodrun --compat real-horovod");
    Given given{find_option(typed.name), typed.name, "", false};
    if (given.option == nullptr) {
      return refuse(typed.name, "not an option of horovodrun", "drun's own options go with drun --compat horovod");
    }
    if (given.option->n_values > 0) {
      if (!typed.value && at == args.size()) return refuse(typed.name, "its value is missing");
      given.value = typed.value ? *typed.value : args[at++];
    }
    out.push_back(std::move(given));
  }
  return out;
}

// "localhost:4" for -np 4 if no hosts are given; "" = they are, or there is no number.
std::string this_machine(const std::vector<Given>& given) {
  std::string out;
  for (const Given& one : given) {
    const std::string_view word = one.option->becomes == Becomes::kOption ? one.option->word : "";
    if (word == "-H" || word == "--hostfile") return "";
    if (word == "-np" && parse_number(one.value)) out = "localhost:" + one.value;
  }
  return out;
}

}  // namespace

Result<Horovodrun> translate_horovodrun(const std::vector<std::string>& args, const TextReader& read,
                                        UnnamedHosts unnamed) {
  Horovodrun out;
  std::size_t at = 0;
  // drun's own option, which says what the options after it become, comes first.
  if (!args.empty() && typed_option(args[0]).name == "--compat") {
    const auto typed = typed_option(args[at++]);
    const std::string value = typed.value ? *typed.value : at < args.size() ? args[at++] : "";
    if (value != "horovod" && value != "real-horovod")
      return refuse("--compat", "'" + value + "' is neither horovod nor real-horovod");
    out.is_real = value == "real-horovod";
  }
  // horovodrun reads no such file: its users would be surprised by one.
  out.args = {"run", "--compat", out.is_real ? "real-horovod" : "horovod", "--config", "none"};
  const auto typed = read_options(args, at);
  if (!typed) return fail(typed.error());
  std::vector<Given> given;
  for (const Given& one : *typed) {
    if (one.option->becomes != Becomes::kFile) continue;
    if (auto ok = add_file(one.value, read, given, out.ignored); !ok) return fail(std::move(ok.error()));
  }
  given.insert(given.end(), typed->begin(), typed->end());
  for (const Given& one : given) {
    const bool is_void = std::any_of(given.begin(), given.end(),
                                     [&](const Given& other) { return is_replaced(one, other, out.is_real); });
    if (is_void) continue;
    if (auto ok = add_given(one, out); !ok) return fail(std::move(ok.error()));
  }
  if (const std::string here = this_machine(given); !here.empty() && unnamed == UnnamedHosts::kThisMachine) {
    out.args.insert(out.args.end(), {"-H", here});
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
        std::find_if(given.begin(), given.end(), [&one](const Given& other) { return is_replaced(one, other, false); });
    if (replaced != given.end()) {
      out.left_out.push_back({one.name, replaced->name + " says otherwise"});
    } else if (one.option->becomes == Becomes::kNothing || one.option->becomes == Becomes::kController) {
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
