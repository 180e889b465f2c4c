#include "bench/worker.h"

#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <ctime>

#include "base/fd.h"
#include "base/text.h"
#include "bench/device.h"
#include "bench/measure.h"
#include "bench/ranks.h"
#include "bench/report.h"

namespace drun::bench {

namespace {

constexpr int kWrong = 1, kUsage = 2;

std::string now() {
  const std::time_t seconds = std::time(nullptr);
  std::tm parts{};
  char text[32] = {};
  if (::localtime_r(&seconds, &parts) != nullptr) std::strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S", &parts);
  return text;
}

void complain(const std::string& text) {
  std::fprintf(stderr, "drun bench: %s\n", text.c_str());
  std::fflush(stderr);
}

// Reduces the sizes if memory is too small for them. Returns the new maximum; nothing if the sizes fit.
std::optional<std::uint64_t> fit_into(std::uint64_t max_bytes, Settings& settings) {
  if (settings.max_bytes <= max_bytes || settings.kind == Kind::kBarrier) return std::nullopt;
  settings.max_bytes = max_bytes;
  settings.min_bytes = std::min(settings.min_bytes, max_bytes);
  return max_bytes;
}

Result<void> check_ranks(const std::vector<Settings>& all) {
  const std::string ranks = plural(static_cast<std::size_t>(drun_size()), "rank");
  for (const auto& settings : all) {
    if (info(settings.kind).rooted && settings.root >= drun_size()) {
      return fail(Errc::kUsage, "-r", "there is no rank " + std::to_string(settings.root) + " among " + ranks);
    }
    if (settings.kind == Kind::kSendRecv && drun_size() < 2) return fail(Errc::kUsage, "-o sendrecv", "needs 2 ranks");
  }
  return {};
}

Result<std::string> nccl_version() {
  int version = 0;
  const char* path = nullptr;
  if (auto ok = checked(drun_nccl_version(&version, &path)); !ok) return fail(std::move(ok.error()));
  // As NCCL_VERSION() of nccl.h composes it.
  return std::to_string(version / 10000) + "." + std::to_string(version / 100 % 100) + "." +
         std::to_string(version % 100) + " (" + path + ")";
}

// Writes to stdout, on rank 0 only.
Result<void> write(const std::string& text) {
  return drun_rank() == 0 ? write_all(STDOUT_FILENO, text) : Result<void>();
}

// Returns the number of measurements with wrong elements. `heading`: the part that is the same for all collectives.
Result<std::uint64_t> measure_one(Settings settings, Heading heading, const Ranks& ranks, const Device* device) {
  heading.time = now();
  heading.reduced_to_bytes = fit_into(ranks.max_bytes, settings);
  heading.settings = settings;
  const auto report = settings.json ? make_json() : make_table();
  if (auto ok = write(report->begin(heading)); !ok) return fail(std::move(ok.error()));
  Measurement measurement(settings, ranks, device);
  if (auto ok = measurement.run([&](const Row& row) { return write(report->row(row)); }); !ok) {
    return fail(std::move(ok.error()));
  }
  Ending ending;
  ending.n_wrong = measurement.n_wrong();
  ending.average_bandwidth = measurement.average_bandwidth();
  ending.time = now();
  if (auto ok = write(report->end(ending)); !ok) return fail(std::move(ok.error()));
  return ending.n_wrong;
}

Result<std::uint64_t> measure_all(const std::vector<Settings>& all, const std::string& version) {
  Heading heading;
  std::unique_ptr<Device> device;
  if (all.front().backend == Backend::kNccl) {
    auto opened = Device::open(drun_local_rank());
    if (!opened) return fail(std::move(opened.error()).with_subject("--backend nccl"));
    device = std::move(*opened);
    auto found = nccl_version();
    if (!found) return fail(std::move(found.error()).with_subject("--backend nccl"));
    heading.nccl = std::move(*found);
  }
  auto ranks = meet(device.get());
  if (!ranks) return fail(std::move(ranks.error()));
  heading.version = version;
  heading.ranks = ranks->places;
  heading.bound = ranks->bound;
  heading.bound_text = ranks->bound_text;

  // The JSON of one collective is a document, that of several is a list of such documents.
  const bool is_list = all.front().json && all.size() > 1;
  std::uint64_t n_wrong = 0;
  for (const auto& settings : all) {
    const std::string before = &settings == &all.front() ? "[" : ",\n";
    if (auto ok = write(is_list ? before : ""); !ok) return fail(std::move(ok.error()));
    auto wrong = measure_one(settings, heading, *ranks, device.get());
    if (!wrong) return fail(std::move(wrong.error()));
    n_wrong += *wrong;
  }
  if (auto ok = write(is_list ? "]\n" : ""); !ok) return fail(std::move(ok.error()));
  return n_wrong;
}

}  // namespace

int run_worker(const std::vector<std::string>& words, const std::string& version) {
  ::prctl(PR_SET_NAME, "drun-bench");
  auto settings = from_words(words);
  if (!settings) {
    complain(settings.error().message());
    return kUsage;
  }
  if (drun_init(nullptr) != DRUN_OK) {
    complain(drun_last_error());
    return kWrong;
  }
  if (auto ok = check_ranks(*settings); !ok) {
    if (drun_rank() == 0) complain(ok.error().message());
    drun_finalize();
    return kUsage;
  }
  const int rank = drun_rank();
  const auto n_wrong = measure_all(*settings, version);
  if (!n_wrong) {
    complain("rank " + std::to_string(rank) + ": " + n_wrong.error().message());
    return kWrong;
  }
  drun_finalize();
  if (*n_wrong == 0 || rank != 0) return 0;  // only rank 0 reports
  complain(plural(*n_wrong, "measurement") + " with wrong elements: column #wrong has how many");
  return kWrong;
}

}  // namespace drun::bench
