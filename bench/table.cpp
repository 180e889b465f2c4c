#include <cstdarg>
#include <cstdio>

#include "bench/report.h"

namespace drun::bench {

namespace {

constexpr double kMicro = 1e6, kGiga = 1e9;

[[gnu::format(printf, 1, 2)]] std::string print(const char* format, ...) {
  char buffer[512];
  va_list arguments;
  va_start(arguments, format);
  const int n = std::vsnprintf(buffer, sizeof buffer, format, arguments);
  va_end(arguments);
  return n > 0 ? std::string(buffer, std::min(static_cast<std::size_t>(n), sizeof buffer - 1)) : std::string();
}

std::string columns(const char* a, const char* b, const char* c, const char* d) {
  return print("  %7s  %6s  %6s  %6s", a, b, c, d);
}

std::string more_columns(const char* a, const char* b, const char* c) { return print(" %7s %7s %6s", a, b, c); }

std::string figures(const std::optional<Figures>& f) {
  if (!f) return columns("N/A", "N/A", "N/A", "N/A");
  return columns(fit(f->seconds * kMicro, 7).c_str(), fit(f->bandwidth.algorithm / kGiga, 6).c_str(),
                 fit(f->bandwidth.bus / kGiga, 6).c_str(),
                 f->wrong ? print("%g", static_cast<double>(*f->wrong)).c_str() : "N/A");
}

std::string more_figures(const std::optional<Figures>& f) {
  if (!f) return more_columns("N/A", "N/A", "-");
  return more_columns(fit(f->p50_seconds * kMicro, 7).c_str(), fit(f->p99_seconds * kMicro, 7).c_str(),
                      f->percent < 0 ? "-" : fit(f->percent, 6).c_str());
}

class Table : public Report {
 public:
  std::string begin(const Heading& heading) override;
  std::string row(const Row& row) override;
  std::string end(const Ending& ending) override;

 private:
  std::string name_;
};

std::string Table::begin(const Heading& h) {
  const Settings& s = h.settings;
  name_ = std::string(info(s.kind).name) + "_perf";
  std::string out = print("# drun bench version %s\n", h.version.c_str());
  out += print("# Collective test starting: %s\n", name_.c_str());
  out += print(
      "# nThread 1 nGpus 1 minBytes %llu maxBytes %llu step: %llu(%s) warmup iters: %d iters: %d agg iters: 1 "
      "validation: %d graph: 0 unalign: 0\n",
      static_cast<unsigned long long>(s.min_bytes), static_cast<unsigned long long>(s.max_bytes),
      static_cast<unsigned long long>(s.factor > 1 ? s.factor : s.step_bytes), s.factor > 1 ? "factor" : "bytes",
      s.n_warmups, s.n_iterations, s.n_checks);
  if (!h.nccl.empty()) out += "#\n# NCCL " + h.nccl + "\n";
  out += "#\n# Using devices\n";
  for (const auto& r : h.ranks) {
    out += print("#  Rank %2d Group %2d Pid %6d on %10s device %2d [%s]\n", r.rank, 0, r.pid, r.host.c_str(), r.device,
                 r.device_info.c_str());
  }
  if (h.reduced_to_bytes) {
    out += print("#\n# Reducing maxBytes to %llu due to memory limitation\n",
                 static_cast<unsigned long long>(*h.reduced_to_bytes));
  }
  out += "#\n# Bound: " + h.bound_text + "\n#\n";
  const auto left = [](const char* a, const char* b, const char* c, const char* d, const char* e) {
    return print("# %10s %12s %8s %6s %4s", a, b, c, d, e);
  };
  out += left("", "", "", "", "") + "           out-of-place                       in-place          " +
         "      out-of-place            in-place\n";
  const std::string names = columns("time", "algbw", "busbw", "#wrong"),
                    more_names = more_columns("p50", "p99", "%bound");
  const std::string units = columns("(us)", "(GB/s)", "(GB/s)", ""), more_units = more_columns("(us)", "(us)", "(%)");
  out += left("size", "count", "type", "redop", "root") + names + names + more_names + more_names + "\n";
  out += left("(B)", "(elements)", "", "", "") + units + units + more_units + more_units + "\n";
  return out;
}

std::string Table::row(const Row& r) {
  return print("%12llu %12llu %8s %6s %4d", static_cast<unsigned long long>(r.n_bytes),
               static_cast<unsigned long long>(r.count), r.type.c_str(), r.op.c_str(), r.root) +
         figures(r.out_of_place) + figures(r.in_place) + more_figures(r.out_of_place) + more_figures(r.in_place) + "\n";
}

std::string Table::end(const Ending& e) {
  std::string out = print("# %-20s : %llu %s\n", "Out of bounds values", static_cast<unsigned long long>(e.n_wrong),
                          e.n_wrong > 0 ? "FAILED" : "OK");
  out += print("# %-20s : %g \n", "Avg bus bandwidth", e.average_bandwidth / kGiga);
  out += "#\n# Collective test concluded: " + name_ + "\n#\n\n";
  return out;
}

}  // namespace

std::unique_ptr<Report> make_table() { return std::make_unique<Table>(); }

std::string fit(double value, int width) {
  for (int decimals = 2; decimals >= 0; --decimals) {
    std::string text = print("%*.*f", width, decimals, value);
    if (text.size() <= static_cast<std::size_t>(width)) return text;
  }
  return print("%*.*e", width, width >= 7 ? 1 : 0, value);
}

}  // namespace drun::bench
