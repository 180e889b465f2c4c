#include "launcher/network/probe_cache.h"

#include <dirent.h>
#include <fcntl.h>
#include <sodium.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "base/bytes.h"
#include "base/fd.h"
#include "base/new_file.h"
#include "base/text.h"

namespace drun::launcher {
namespace {

constexpr std::string_view kMagic = "drun probe results 2\n";
constexpr std::string_view kPrefix = "probe-";
constexpr std::size_t kHashBytes = 16;
constexpr std::size_t kMaxFile = 64u << 20;

std::string hash(std::string_view bytes) {
  std::string out(kHashBytes, '\0');
  crypto_generichash(reinterpret_cast<unsigned char*>(out.data()), out.size(),
                     reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size(), nullptr, 0);
  return out;
}

std::int64_t seconds_of(ProbeCache::Time time) {
  return std::chrono::duration_cast<std::chrono::seconds>(time.time_since_epoch()).count();
}

// True for a regular file that we own and that only we can write.
bool is_trusted(int fd) {
  struct stat info {};
  return ::fstat(fd, &info) == 0 && S_ISREG(info.st_mode) && info.st_uid == ::geteuid() && (info.st_mode & 022) == 0;
}

std::optional<std::string> read_trusted(const std::string& path) {
  const Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (!file || !is_trusted(file.get())) return std::nullopt;
  auto bytes = read_to_end(file.get(), kMaxFile);
  return bytes ? std::optional(std::move(*bytes)) : std::nullopt;
}

// Creates the last two directories, usually .cache/drun: a home that does not exist is not created.
void make_directories(const std::string& path) {
  ::mkdir(path.substr(0, path.rfind('/')).c_str(), 0700);
  ::mkdir(path.c_str(), 0700);
}

}  // namespace

std::string probe_key(const std::vector<netdetect::HostInterfaces>& hosts, const netdetect::Candidates& candidates,
                      int head) {
  ByteWriter out;
  out.str(DRUN_VERSION);
  out.i32(head);
  out.u32(static_cast<std::uint32_t>(hosts.size()));
  for (const auto& host : hosts) {
    out.str(host.host);
    out.str(host.net_namespace);
  }
  out.u32(static_cast<std::uint32_t>(candidates.tried.size()));
  for (const auto& candidate : candidates.tried) {
    const auto& nic =
        hosts[static_cast<std::size_t>(candidate.host)].interfaces[static_cast<std::size_t>(candidate.interface)];
    out.i32(candidate.host);
    out.str(nic.name);
    out.str(nic.kind);
    out.str(nic.master);
    out.i32(nic.index);
    out.i32(nic.mtu);
    out.i32(nic.speed_mbps);
    out.boolean(nic.rdma);
    out.i64(nic.route_metric);
    out.str(candidate.address.bytes);
    out.i32(candidate.address.prefix_length);
  }
  return hex(hash(out.bytes()));
}

std::optional<ProbeCache::Entry> ProbeCache::load(const std::string& key, std::size_t n_hosts, std::size_t n_candidates,
                                                  Time now) const {
  if (directory_.empty()) return std::nullopt;
  const auto bytes = read_trusted(path(key));
  if (!bytes || bytes->size() < kMagic.size() + kHashBytes) return std::nullopt;
  const std::string_view body = std::string_view(*bytes).substr(0, bytes->size() - kHashBytes);
  if (body.substr(0, kMagic.size()) != kMagic || hash(body) != bytes->substr(body.size())) return std::nullopt;

  ByteReader in(body.substr(kMagic.size()));
  Entry entry;
  const std::int64_t stored = in.i64(), today = seconds_of(now);
  if (in.str() != key || stored > today || stored < today - kMaxAge.count()) return std::nullopt;
  entry.age = std::chrono::seconds(today - stored);
  const std::size_t n = in.count(8);
  for (std::size_t i = 0; i < n && in.ok(); ++i) {
    netdetect::AttemptResult result;
    result.attempt.from = in.i32();
    result.attempt.candidate = in.i32();
    entry.results.push_back(std::move(result));
  }
  const std::size_t n_measured = in.count(4);
  if (n_measured != 0 && n_measured != n_candidates) return std::nullopt;
  for (std::size_t i = 0; i < n_measured && in.ok(); ++i) entry.measured_mbps.push_back(std::max(in.i32(), 0));
  entry.measured_mbps.resize(n_candidates, 0);
  auto results = netdetect::decode_results(in);
  if (!in.done() || results.size() != entry.results.size() || n == 0) return std::nullopt;
  for (std::size_t i = 0; i < n; ++i) {
    const auto& attempt = entry.results[i].attempt;
    if (attempt.from < 0 || static_cast<std::size_t>(attempt.from) >= n_hosts || attempt.candidate < 0 ||
        static_cast<std::size_t>(attempt.candidate) >= n_candidates) {
      return std::nullopt;
    }
    entry.results[i].result = std::move(results[i]);
  }
  return entry;
}

void ProbeCache::store(const std::string& key, const std::vector<netdetect::AttemptResult>& results, Time now,
                       const std::vector<int>& measured_mbps) const {
  if (directory_.empty()) return;
  ByteWriter out;
  out.raw(kMagic);
  out.i64(seconds_of(now));
  out.str(key);
  out.u32(static_cast<std::uint32_t>(results.size()));
  std::vector<netdetect::ProbeResult> parts;
  for (const auto& result : results) {
    out.i32(result.attempt.from);
    out.i32(result.attempt.candidate);
    parts.push_back(result.result);
  }
  out.u32(static_cast<std::uint32_t>(measured_mbps.size()));
  for (const int mbps : measured_mbps) out.i32(mbps);
  netdetect::encode(out, parts);
  out.raw(hash(out.bytes()));

  make_directories(directory_);
  auto file = NewFile::create(path(key), 0600);
  if (!file || !file->write(out.bytes()) || !file->commit()) return;
  make_room();
}

void ProbeCache::drop(const std::string& key) const {
  if (!directory_.empty()) ::unlink(path(key).c_str());
}

// Also removes temporary files of a drun that was killed.
void ProbeCache::make_room() const {
  const std::unique_ptr<DIR, int (*)(DIR*)> dir(::opendir(directory_.c_str()), ::closedir);
  if (!dir) return;
  std::vector<std::pair<std::int64_t, std::string>> entries;  // by time of the last change
  while (const dirent* item = ::readdir(dir.get())) {
    const std::string name = item->d_name;
    if (name.compare(0, kPrefix.size(), kPrefix) != 0) continue;
    struct stat info {};
    const std::string full = directory_ + "/" + name;
    if (::lstat(full.c_str(), &info) != 0 || !S_ISREG(info.st_mode)) continue;
    entries.emplace_back(static_cast<std::int64_t>(info.st_mtim.tv_sec) * 1000000000 + info.st_mtim.tv_nsec, full);
  }
  if (entries.size() <= kMaxEntries) return;
  std::sort(entries.begin(), entries.end());
  for (std::size_t i = 0; i < entries.size() - kMaxEntries; ++i) ::unlink(entries[i].second.c_str());
}

}  // namespace drun::launcher
