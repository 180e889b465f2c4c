#include "bench/settings.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <limits>

#include "base/text.h"
#include "bench/element.h"

namespace drun::bench {

namespace {

constexpr std::uint64_t kMaxBytes = std::uint64_t{1} << 46;
constexpr std::uint64_t kMaxRows = 100000;
constexpr std::uint64_t kMaxIterations = 10000000;

struct TypeName {
  drun_dtype dtype;
  const char* name;        // nccl-tests'
  const char* short_name;  // libdrun's
  std::size_t size;
};
// In the order of `-d all`, which is that of nccl-tests.
constexpr std::array<TypeName, 10> kTypes = {{
    {DRUN_INT8, "int8", "i8", 1},
    {DRUN_UINT8, "uint8", "u8", 1},
    {DRUN_INT32, "int32", "i32", 4},
    {DRUN_UINT32, "uint32", "u32", 4},
    {DRUN_INT64, "int64", "i64", 8},
    {DRUN_UINT64, "uint64", "u64", 8},
    {DRUN_FLOAT16, "half", "f16", 2},
    {DRUN_FLOAT32, "float", "f32", 4},
    {DRUN_FLOAT64, "double", "f64", 8},
    {DRUN_BFLOAT16, "bfloat16", "bf16", 2},
}};

struct OpName {
  drun_op op;
  const char* name;
};
constexpr std::array<OpName, 6> kOps = {{{DRUN_SUM, "sum"},
                                         {DRUN_PROD, "prod"},
                                         {DRUN_MAX, "max"},
                                         {DRUN_MIN, "min"},
                                         {DRUN_AVG, "avg"},
                                         {DRUN_ADASUM, "adasum"}}};

const TypeName& type(drun_dtype dtype) {
  return *std::find_if(kTypes.begin(), kTypes.end(), [&](const TypeName& t) { return t.dtype == dtype; });
}

Error wrong(const std::string& subject, std::string cause, std::string hint) {
  return Error(Errc::kUsage, subject, std::move(cause)).with_hint(std::move(hint));
}

template <typename Names>
std::string list(const Names& names) {
  std::vector<std::string> out;
  for (const auto& one : names) out.emplace_back(one.name);
  return join(out, ", ") + ", all";
}

std::uint64_t next_size(std::uint64_t n_bytes, std::uint64_t factor, std::uint64_t step) {
  return factor > 1 ? n_bytes * factor : n_bytes + step;
}

std::vector<std::uint64_t> sequence(std::uint64_t first, std::uint64_t last, std::uint64_t factor, std::uint64_t step) {
  std::vector<std::uint64_t> out;
  for (std::uint64_t size = first; size <= last; size = next_size(size, factor, step)) {
    out.push_back(size);
    if (next_size(size, factor, step) <= size) break;
  }
  return out;
}

template <typename T>
std::string numbers(const std::vector<T>& values) {
  std::vector<std::string> out;
  for (const auto value : values) out.push_back(std::to_string(static_cast<int>(value)));
  return join(out, ",");
}

}  // namespace

Result<std::uint64_t> parse_size(std::string_view text) {
  const Error bad = wrong("", "'" + std::string(text) + "' is not a size", "8, 64K, 1.5M or 2G");
  std::uint64_t unit = 1;
  std::string digits(text);
  if (!digits.empty()) {
    const char last = digits.back();
    if (last == 'k' || last == 'K') unit = 1u << 10;
    if (last == 'm' || last == 'M') unit = 1u << 20;
    if (last == 'g' || last == 'G') unit = 1u << 30;
    if (unit > 1) digits.pop_back();
  }
  const auto dot = digits.find('.');
  const auto whole = parse_number(digits.substr(0, dot));
  if (!whole || *whole > kMaxBytes) return fail(bad);
  std::uint64_t n_bytes = *whole * unit;
  if (dot != std::string::npos) {
    const std::string fraction = digits.substr(dot + 1);
    if (!parse_number(fraction) || fraction.size() > 15) return fail(bad);
    n_bytes += static_cast<std::uint64_t>(std::strtod(("0." + fraction).c_str(), nullptr) * static_cast<double>(unit));
  }
  if (*whole > kMaxBytes / unit || n_bytes > kMaxBytes) return fail(bad);
  return n_bytes;
}

Result<std::vector<drun_dtype>> parse_dtypes(std::string_view text) {
  std::vector<drun_dtype> out;
  for (const auto& one : kTypes) {
    if (text == "all" || text == one.name || text == one.short_name) out.push_back(one.dtype);
  }
  if (out.empty()) return fail(wrong("", "'" + std::string(text) + "' is no element type", list(kTypes)));
  return out;
}

Result<std::vector<drun_op>> parse_ops(std::string_view text) {
  std::vector<drun_op> out;
  for (const auto& one : kOps) {
    // "all" leaves out Adasum, which supports few types and one collective.
    if ((text == "all" && one.op != DRUN_ADASUM) || text == one.name) out.push_back(one.op);
  }
  if (out.empty()) return fail(wrong("", "'" + std::string(text) + "' is no reduction", list(kOps)));
  return out;
}

bool is_op_name(std::string_view text) {
  return std::any_of(kOps.begin(), kOps.end(), [&](const OpName& one) { return text == one.name; });
}

Result<Backend> parse_backend(std::string_view text) {
  if (text == "cpu") return Backend::kCpu;
  if (text == "nccl") return Backend::kNccl;
  return fail(wrong("", "'" + std::string(text) + "' is no backend", "--backend nccl, or cpu"));
}

Result<int> parse_root(std::string_view text) {
  if (text == "all" || text == "-1") return kAllRoots;
  const auto rank = parse_number(text);
  if (!rank || *rank > 1000000) {
    return fail(wrong("", "'" + std::string(text) + "' is neither a rank nor all", "-r 0"));
  }
  return static_cast<int>(*rank);
}

std::string dtype_name(drun_dtype dtype) { return type(dtype).name; }

std::string op_name(drun_op op) {
  for (const auto& one : kOps) {
    if (one.op == op) return one.name;
  }
  return "none";
}

std::size_t element_size(drun_dtype dtype) { return type(dtype).size; }

Result<void> check(const Settings& s) {
  if (s.min_bytes > s.max_bytes) {
    return fail(wrong("-b", std::to_string(s.min_bytes) + " bytes are more than -e's " + std::to_string(s.max_bytes),
                      "-b 8 -e 128M"));
  }
  const auto is_adasum = [](drun_op op) { return op == DRUN_ADASUM; };
  if (std::any_of(s.ops.begin(), s.ops.end(), is_adasum)) {
    const auto fits = [](drun_dtype dtype) { return dtype == DRUN_FLOAT32 || dtype == DRUN_FLOAT64; };
    if (s.kind != Kind::kAllReduce) return fail(wrong("--redop", "adasum is for all_reduce", "-o all_reduce"));
    if (!std::all_of(s.dtypes.begin(), s.dtypes.end(), fits)) {
      return fail(wrong("--redop", "adasum is for float and double", "-d float"));
    }
  }
  const bool averages = info(s.kind).reduces && std::count(s.ops.begin(), s.ops.end(), DRUN_AVG) > 0;
  if (s.backend == Backend::kNccl && averages && std::any_of(s.dtypes.begin(), s.dtypes.end(), is_integer)) {
    return fail(wrong("--redop", "averages of integers are not NCCL's: libdrun makes them on the host", "--redop sum"));
  }
  if (s.backend != Backend::kNccl && s.registers) {
    return fail(wrong("-R", "only NCCL registers buffers", "--backend nccl"));
  }
  if (s.backend == Backend::kNccl && s.kind == Kind::kBarrier) {
    return fail(wrong("-o", "a barrier is the host's, whatever the backend", "--backend cpu"));
  }
  if (s.factor < 1) return fail(wrong("-f", "0 is no factor between sizes", "-f 2"));
  if (s.max_bytes > s.min_bytes) {
    if (s.factor > 1 && s.min_bytes == 0) return fail(wrong("-b", "0 times -f stays 0", "-b 8"));
    if (s.factor == 1 && s.step_bytes == 0) return fail(wrong("-i", "sizes that don't grow", "-i 1M, or -f 2"));
    if (s.factor == 1 && (s.max_bytes - s.min_bytes) / s.step_bytes >= kMaxRows) {
      return fail(wrong("-i", "that is more than " + std::to_string(kMaxRows) + " sizes", "-f 2, or a larger -i"));
    }
  }
  return {};
}

std::vector<std::uint64_t> sizes(const Settings& s) {
  return sequence(s.min_bytes, s.max_bytes, s.factor, s.step_bytes);
}

std::vector<std::uint64_t> warmup_sizes(const Settings& s) { return sequence(s.min_bytes, s.max_bytes, 2, 0); }

std::vector<std::string> to_words(const std::vector<Settings>& settings) {
  std::vector<std::string> kinds;
  for (const auto& one : settings) kinds.emplace_back(info(one.kind).name);
  const Settings& s = settings.front();
  return {"kind=" + join(kinds, ","),
          "ops=" + numbers(s.ops),
          "dtypes=" + numbers(s.dtypes),
          "root=" + (s.root == kAllRoots ? std::string("all") : std::to_string(s.root)),
          "min=" + std::to_string(s.min_bytes),
          "max=" + std::to_string(s.max_bytes),
          "step=" + std::to_string(s.step_bytes),
          "factor=" + std::to_string(s.factor),
          "iterations=" + std::to_string(s.n_iterations),
          "warmups=" + std::to_string(s.n_warmups),
          "checks=" + std::to_string(s.n_checks),
          std::string("json=") + (s.json ? "1" : "0"),
          std::string("register=") + (s.registers ? "1" : "0"),
          s.backend == Backend::kNccl ? kNcclWord : "backend=cpu"};
}

Result<std::vector<Settings>> from_words(const std::vector<std::string>& words) {
  Settings out;
  std::vector<Kind> kinds = {out.kind};
  for (const auto& word : words) {
    const Error bad = wrong(word, "not a setting of the bench worker", "drun bench --help");
    const auto equals = word.find('=');
    if (equals == std::string::npos) return fail(bad);
    const std::string name = word.substr(0, equals), value = word.substr(equals + 1);
    const auto number = parse_number(value);
    const int small = number && *number <= kMaxIterations ? static_cast<int>(*number) : -1;
    if (name == "kind") {
      kinds.clear();
      for (const auto name_of_one : split(value, ',')) {
        const auto kind = kind_of(name_of_one);
        if (!kind) return fail(bad);
        kinds.push_back(*kind);
      }
    } else if (name == "root") {
      const auto root = parse_root(value);
      if (!root) return fail(bad);
      out.root = *root;
    } else if (name == "backend") {
      const auto backend = parse_backend(value);
      if (!backend) return fail(bad);
      out.backend = *backend;
    } else if (name == "ops" || name == "dtypes") {
      (name == "ops" ? out.ops.clear() : out.dtypes.clear());
      for (const auto part : split(value, ',')) {
        const auto one = parse_number(part);
        const auto same = [&](const auto& known) { return one && static_cast<int>(known) == static_cast<int>(*one); };
        if (name == "ops") {
          const auto found = std::find_if(kOps.begin(), kOps.end(), [&](const OpName& o) { return same(o.op); });
          if (found == kOps.end()) return fail(bad);
          out.ops.push_back(found->op);
        } else {
          const auto found =
              std::find_if(kTypes.begin(), kTypes.end(), [&](const TypeName& t) { return same(t.dtype); });
          if (found == kTypes.end()) return fail(bad);
          out.dtypes.push_back(found->dtype);
        }
      }
    } else if (!number) {
      return fail(bad);
    } else if (name == "min") {
      out.min_bytes = *number;
    } else if (name == "max") {
      out.max_bytes = *number;
    } else if (name == "step") {
      out.step_bytes = *number;
    } else if (name == "factor") {
      out.factor = *number;
    } else if (small < 0) {
      return fail(bad);
    } else if (name == "iterations") {
      out.n_iterations = std::max(small, 1);
    } else if (name == "warmups") {
      out.n_warmups = small;
    } else if (name == "checks") {
      out.n_checks = small;
    } else if (name == "json") {
      out.json = small != 0;
    } else if (name == "register") {
      out.registers = small != 0;
    } else {
      return fail(bad);
    }
  }
  std::vector<Settings> all;
  for (const Kind kind : kinds) {
    out.kind = kind;
    if (auto ok = check(out); !ok) return fail(std::move(ok.error()));
    all.push_back(out);
  }
  return all;
}

}  // namespace drun::bench
