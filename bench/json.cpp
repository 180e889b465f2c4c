#include <cmath>
#include <cstdio>

#include "bench/report.h"

namespace drun::bench {

namespace {

constexpr int kJsonVersion = 3;  // of nccl-tests, which defines the names
constexpr double kMicro = 1e6, kGiga = 1e9;

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    const auto u = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (u < 0x20 || u >= 0x7f) {  // not in host names
      char escape[8];
      std::snprintf(escape, sizeof escape, "\\u%04x", u);
      out += escape;
    } else {
      out += c;
    }
  }
  return out + "\"";
}

std::string number(double value) {
  if (!std::isfinite(value)) return "null";
  char text[64];
  std::snprintf(text, sizeof text, "%.6g", value);
  return text;
}

std::string number(std::uint64_t value) { return std::to_string(value); }
std::string number(int value) { return std::to_string(value); }

std::string field(const char* name, const std::string& value) { return "\"" + std::string(name) + "\": " + value; }

std::string figures(const std::optional<Figures>& f) {
  if (!f) return "null";
  return "{" + field("time", number(f->seconds * kMicro)) + ", " +
         field("alg_bw", number(f->bandwidth.algorithm / kGiga)) + ", " +
         field("bus_bw", number(f->bandwidth.bus / kGiga)) + ", " +
         field("nwrong", f->wrong ? number(*f->wrong) : "null") + ", " +
         field("p50_us", number(f->p50_seconds * kMicro)) + ", " + field("p99_us", number(f->p99_seconds * kMicro)) +
         ", " + field("bound_percent", f->percent < 0 ? "null" : number(f->percent)) + "}";
}

const char* bound_name(BoundKind kind) {
  return kind == BoundKind::kMemory ? "memory" : kind == BoundKind::kLineRate ? "line_rate" : "unknown";
}

// One row per line; the whole is one document.
class Json : public Report {
 public:
  std::string begin(const Heading& heading) override;
  std::string row(const Row& row) override;
  std::string end(const Ending& ending) override;

 private:
  Settings settings_;
  bool is_first_ = true;
};

std::string Json::begin(const Heading& h) {
  settings_ = h.settings;
  const Settings& s = h.settings;
  std::string out =
      "{" + field("version", number(kJsonVersion)) + ",\n " + field("start_time", quoted(h.time)) + ",\n " +
      field("drun_version", quoted(h.version)) + ",\n " + "\"config\": {" + field("nthreads", "1") + ", " +
      field("ngpus", "1") + ", " + field("minimum_bytes", number(s.min_bytes)) + ", " +
      field("maximum_bytes", number(s.max_bytes)) + ", " +
      (s.factor > 1 ? field("step_factor", number(s.factor)) : field("step_bytes", number(s.step_bytes))) + ", " +
      field("warmup_iters", number(s.n_warmups)) + ", " + field("iterations", number(s.n_iterations)) + ", " +
      field("local_register", number(s.registers ? 1 : 0)) + ", " + field("aggregated_iterations", "1") + ", " +
      field("validation", number(s.n_checks)) + ",\n  \"devices\": [";
  for (const auto& r : h.ranks) {
    out += (&r == &h.ranks.front() ? "\n   {" : ",\n   {") + field("rank", number(r.rank)) + ", " +
           field("group", "0") + ", " + field("pid", number(r.pid)) + ", " + field("hostname", quoted(r.host)) + ", " +
           field("device", number(r.device)) + ", " + field("device_info", quoted(r.device_info)) + "}";
  }
  out += "]},\n " + field("nccl", h.nccl.empty() ? "null" : quoted(h.nccl)) + ",\n \"bound\": {" +
         field("kind", quoted(bound_name(h.bound.kind))) + ", " +
         field("bandwidth", h.bound.kind == BoundKind::kUnknown ? "null" : number(h.bound.bytes_per_second / kGiga)) +
         ", " + field("text", quoted(h.bound_text)) + "},\n \"results\": [";
  return out;
}

std::string Json::row(const Row& r) {
  const std::string separator = is_first_ ? "\n  " : ",\n  ";
  is_first_ = false;
  return separator + "{" + field("size", number(r.n_bytes)) + ", " + field("count", number(r.count)) + ", " +
         field("type", quoted(r.type)) + ", " + field("redop", quoted(r.op)) + ", " + field("root", number(r.root)) +
         ", " + field("out_of_place", figures(r.out_of_place)) + ", " + field("in_place", figures(r.in_place)) + ", " +
         field("actual_iterations", number(settings_.n_iterations)) + ", " +
         field("experiment_name", quoted(std::string(info(settings_.kind).name) + "_perf")) + "}";
}

// nccl-tests writes booleans as strings.
std::string Json::end(const Ending& e) {
  return "],\n \"out_of_bounds\": {" + field("count", number(e.n_wrong)) + ", " +
         field("okay", e.n_wrong == 0 ? "\"true\"" : "\"false\"") + "},\n \"average_bus_bandwidth\": {" +
         field("bandwidth", number(e.average_bandwidth / kGiga)) + ", " + field("okay", "\"unchecked\"") +
         "},\n \"errors\": [],\n " + field("end_time", quoted(e.time)) + "}\n";
}

}  // namespace

std::unique_ptr<Report> make_json() { return std::make_unique<Json>(); }

}  // namespace drun::bench
