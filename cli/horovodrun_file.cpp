#include "cli/horovodrun_file.h"

#include <yaml.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

#include "base/text.h"

namespace drun::cli {

namespace {

struct Key {
  std::string_view name;
  std::string_view option;    // with the value, or if the value is true
  std::string_view if_false;  // "" = the option takes a value
};

// As in set_args_from_config() of horovod/runner/common/util/config_parser.py.
constexpr Key kKeys[] = {
    {"params.fusion_threshold_mb", "--fusion-threshold-mb", ""},
    {"params.cycle_time_ms", "--cycle-time-ms", ""},
    {"params.cache_capacity", "--cache-capacity", ""},
    {"params.hierarchical_allreduce", "--hierarchical-allreduce", "--no-hierarchical-allreduce"},
    {"params.hierarchical_allgather", "--hierarchical-allgather", "--no-hierarchical-allgather"},
    {"params.torus_allreduce", "--torus-allreduce", "--no-torus-allreduce"},
    {"autotune.enabled", "--autotune", "--no-autotune"},
    {"autotune.log_file", "--autotune-log-file", ""},
    {"autotune.warmup_samples", "--autotune-warmup-samples", ""},
    {"autotune.steps_per_sample", "--autotune-steps-per-sample", ""},
    {"autotune.bayes_opt_max_samples", "--autotune-bayes-opt-max-samples", ""},
    {"autotune.gaussian_process_noise", "--autotune-gaussian-process-noise", ""},
    {"timeline.filename", "--timeline-filename", ""},
    {"timeline.mark_cycles", "--timeline-mark-cycles", "--no-timeline-mark-cycles"},
    {"stall_check.enabled", "--stall-check", "--no-stall-check"},
    {"stall_check.warning_time_seconds", "--stall-check-warning-time-seconds", ""},
    {"stall_check.shutdown_time_seconds", "--stall-check-shutdown-time-seconds", ""},
    {"library_options.mpi_threads_disable", "--mpi-threads-disable", "--no-mpi-threads-disable"},
    {"library_options.num_nccl_streams", "--num-nccl-streams", ""},
    {"library_options.thread_affinity", "--thread-affinity", ""},
    {"library_options.gloo_timeout_seconds", "--gloo-timeout-seconds", ""},
    {"logging.level", "--log-level", ""},
    {"logging.with_timestamp", "--log-with-timestamp", "--log-without-timestamp"},
};

std::string text_of(const yaml_event_t& event) {
  const auto* bytes = reinterpret_cast<const char*>(event.data.scalar.value);
  return {bytes, event.data.scalar.length};
}

bool is_one_of(std::string_view word, std::initializer_list<std::string_view> words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

// YAML 1.1, which Python's yaml reads.
std::optional<bool> boolean_of(const std::string& value) {
  const std::string word = lower(value);
  if (is_one_of(word, {"true", "yes", "on"})) return true;
  if (is_one_of(word, {"false", "no", "off"})) return false;
  return std::nullopt;
}

bool is_null(const yaml_event_t& event, const std::string& value) {
  return event.data.scalar.style == YAML_PLAIN_SCALAR_STYLE && is_one_of(value, {"", "~", "null", "Null", "NULL"});
}

// Reads one document: a table of values and of tables of values.
class Reader {
 public:
  Reader(std::string_view text, const std::string& name) : name_(name) {
    yaml_parser_initialize(&parser_);
    yaml_parser_set_input_string(&parser_, reinterpret_cast<const unsigned char*>(text.data()), text.size());
  }
  ~Reader() {
    yaml_event_delete(&event_);
    yaml_parser_delete(&parser_);
  }
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;

  Result<std::vector<HorovodSetting>> read() {
    bool has_document = false;
    while (true) {
      if (auto ok = next(); !ok) return fail(std::move(ok.error()));
      if (event_.type == YAML_STREAM_END_EVENT) return std::move(settings_);
      if (event_.type == YAML_STREAM_START_EVENT || event_.type == YAML_DOCUMENT_END_EVENT) continue;
      if (event_.type != YAML_DOCUMENT_START_EVENT || has_document) return fault("a second document");
      has_document = true;
      if (auto ok = next(); !ok) return fail(std::move(ok.error()));
      if (event_.type == YAML_SCALAR_EVENT && is_null(event_, text_of(event_))) continue;
      if (event_.type != YAML_MAPPING_START_EVENT) return fault("a table was expected: `timeline:`, `params:`");
      if (auto ok = read_table(""); !ok) return fail(std::move(ok.error()));
    }
  }

 private:
  tl::unexpected<Error> fault(std::string cause) const {
    return fail(Errc::kUsage, name_ + ":" + std::to_string(event_.start_mark.line + 1), std::move(cause));
  }

  Result<void> next() {
    yaml_event_delete(&event_);
    if (yaml_parser_parse(&parser_, &event_) == 1) return {};
    event_ = {};
    const std::string line = std::to_string(parser_.problem_mark.line + 1);
    return fail(Errc::kUsage, name_ + ":" + line, parser_.problem == nullptr ? "not YAML" : parser_.problem);
  }

  // The start of the table was read. `section`: "" for the outer one, else "params".
  Result<void> read_table(const std::string& section) {
    while (true) {
      if (auto ok = next(); !ok) return ok;
      if (event_.type == YAML_MAPPING_END_EVENT) return {};
      if (event_.type != YAML_SCALAR_EVENT) return fault("a key was expected");
      const std::string key = section.empty() ? text_of(event_) : section + "." + text_of(event_);
      if (auto ok = next(); !ok) return ok;
      const bool is_section = event_.type == YAML_MAPPING_START_EVENT && section.empty();
      auto ok = is_section ? read_table(key) : read_value(key);
      if (!ok) return ok;
    }
  }

  Result<void> read_value(const std::string& key) {
    if (event_.type != YAML_SCALAR_EVENT) return fault(key + ": one value was expected");
    const std::string value = text_of(event_);
    if (is_null(event_, value)) return {};
    auto setting = setting_of(key, value);
    if (!setting) return fail(std::move(setting.error()));
    std::erase_if(settings_, [&key](const HorovodSetting& other) { return other.key == key; });
    settings_.push_back(std::move(*setting));
    return {};
  }

  Result<HorovodSetting> setting_of(const std::string& key, const std::string& value) const {
    if (key == "controller") {
      if (!is_one_of(lower(value), {"gloo", "mpi"}))
        return fault("controller: '" + value + "' is neither gloo nor mpi");
      return HorovodSetting{key, "--" + lower(value), ""};
    }
    const auto* known =
        std::find_if(std::begin(kKeys), std::end(kKeys), [&key](const Key& k) { return k.name == key; });
    if (known == std::end(kKeys)) return HorovodSetting{key, "", value};
    if (known->if_false.empty()) return HorovodSetting{key, std::string(known->option), value};
    const auto is_on = boolean_of(value);
    if (!is_on) return fault(key + ": '" + value + "' is neither true nor false");
    return HorovodSetting{key, std::string(*is_on ? known->option : known->if_false), ""};
  }

  const std::string& name_;
  yaml_parser_t parser_{};
  yaml_event_t event_{};
  std::vector<HorovodSetting> settings_;
};

}  // namespace

Result<std::vector<HorovodSetting>> parse_horovodrun_file(std::string_view text, const std::string& name) {
  return Reader(text, name).read();
}

}  // namespace drun::cli
