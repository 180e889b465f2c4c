// Files that drun has written and reads again: the baseline of a cluster, and the cache of probe results.
#include <sodium.h>
#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "check/baseline.h"
#include "launcher/network/probe_cache.h"
#include "tests/fuzz/fuzz.h"

namespace drun::fuzz {
namespace {

void read_baseline(std::string_view json) {
  const auto baseline = check::parse_baseline(std::string(json));
  if (!baseline) {
    expect(baseline.error().code == Errc::kUsage && !baseline.error().cause.empty(), "an error says what is wrong");
    return;
  }
  for (const auto& [pair, link] : baseline->links) {
    expect(link.bits_per_second >= 0 && link.rtt_us >= 0, "a measurement is no debt");
    expect(std::isfinite(link.bits_per_second) && std::isfinite(link.rtt_us), "a measurement is a number");
  }
  const auto again = check::parse_baseline(check::to_json(*baseline));
  expect(again && again->links.size() == baseline->links.size(), "a baseline is read as it was written");
  const std::vector<std::string> names = {"a", "b"};
  netdetect::Link link;
  link.b = 1;
  netdetect::LinkReport report;
  report.links = {link};
  (void)check::pairs_below_baseline(names, report.links, *baseline);
  (void)check::baseline_findings(names, report, *baseline);
}

// A folder of this process, and a file in it that ProbeCache finds under kKey.
class CacheFile {
 public:
  static constexpr const char* kKey = "k";
  CacheFile() {
    char name[] = "/tmp/drun-fuzz-XXXXXX";
    if (::mkdtemp(name) == nullptr) std::abort();
    folder = name;
  }
  ~CacheFile() { std::filesystem::remove_all(folder); }
  // With the checksum that it needs.
  void write(std::string body) const {
    body.insert(0, "drun probe results 2\n");
    unsigned char hash[16];
    crypto_generichash(hash, sizeof hash, reinterpret_cast<const unsigned char*>(body.data()), body.size(), nullptr, 0);
    body.append(reinterpret_cast<const char*>(hash), sizeof hash);
    std::ofstream out(path(), std::ios::binary);
    out << body;
    out.close();
    std::filesystem::permissions(path(), std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
  }
  std::string path() const { return folder + "/probe-" + kKey; }

  std::string folder;
};

const launcher::ProbeCache::Time kNow{std::chrono::hours(24 * 365)};

void read_cache(std::string_view body) {
  static const CacheFile file;
  file.write(std::string(body));
  const launcher::ProbeCache cache(file.folder);
  const std::size_t before = allocated_bytes();
  const auto entry = cache.load(CacheFile::kKey, 2, 3, kNow);
  expect_bounded_memory(before, body.size());
  if (!entry) return;
  expect(!entry->results.empty() && entry->measured_mbps.size() == 3, "an entry fits its hosts");
  for (const auto& result : entry->results) {
    expect(result.attempt.from >= 0 && result.attempt.from < 2 && result.attempt.candidate >= 0 &&
               result.attempt.candidate < 3,
           "an attempt is between hosts of the job");
  }
  expect(entry->age >= std::chrono::seconds(0) && entry->age <= launcher::ProbeCache::kMaxAge, "an entry is young");
}

void run(std::string_view bytes) {
  Input in(bytes);
  if (in.below(2) == 0) return read_baseline(in.rest());
  read_cache(in.rest());
}

std::vector<std::string> seeds() {
  check::Baseline baseline;
  baseline.saved = "2026-11-22T04:57:02Z";
  baseline.links[{"a", "b"}] = {1e10, 12.5};
  baseline.links[{"b", "a"}] = {0, 0};
  std::vector<netdetect::AttemptResult> results(2);
  results[1].attempt.from = 1;
  results[1].attempt.candidate = 2;
  results[1].result.detail = "no route to host";
  const CacheFile file;
  launcher::ProbeCache(file.folder).store(CacheFile::kKey, results, kNow, {10, 20, 30});
  std::ifstream in(file.path(), std::ios::binary);
  std::string body{std::istreambuf_iterator<char>(in), {}};
  body = body.substr(21, body.size() - 21 - 16);  // without the first line and the checksum
  return {
      Script().byte(0).raw(check::to_json(baseline)),
      Script().byte(0).raw(R"({"kind": "drun check baseline", "version": 2})"),
      Script().byte(1).raw(body),
  };
}

const Target kTarget("saved_files", run, seeds);

}  // namespace
}  // namespace drun::fuzz
