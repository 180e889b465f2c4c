#include "bench/ranks.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <limits>

#include "base/fd.h"
#include "base/text.h"
#include "bench/buffer_limit.h"
#include "bench/copy_speed.h"
#include "bench/line_rate.h"
#include "runtime/include/drun/drun.h"

namespace drun::bench {

namespace {

constexpr double kGiga = 1e9;
constexpr std::size_t kMinCopy = 4u << 20, kMaxCopy = 32u << 20, kCopyOfHost = 256u << 20;

// The facts that ranks exchange about themselves.
struct Words {
  std::uint64_t host_bytes = 0, gpu_bytes = 0;  // memory that it may take
  std::uint64_t line_rate = 0;                  // bits per second; 0: unknown
  std::int32_t pid = 0;
  std::int32_t local_rank = 0;
  char host[64] = {};
  char nic[32] = {};
  std::int32_t device = 0;
  char device_name[64] = {};
  char gpu[16] = {};
};

template <std::size_t n>
void put(char (&into)[n], const std::string& text) {
  text.copy(into, n - 1);
}

std::uint64_t available_on_host() {
  const auto text = read_file("/proc/meminfo");
  if (!text) return std::numeric_limits<std::uint64_t>::max();
  for (const auto line : split(*text, '\n')) {
    if (!starts_with(line, "MemAvailable:")) continue;
    const auto digits = trim(line.substr(line.find(':') + 1));
    const auto kib = parse_number(digits.substr(0, digits.find(' ')));
    if (kib) return *kib * 1024;
  }
  return std::numeric_limits<std::uint64_t>::max();
}

Result<Words> own_words(const Device* device) {
  Words out;
  out.host_bytes = available_on_host();
  out.device = drun_local_rank();
  put(out.device_name, "cpu");
  if (device != nullptr) {
    const auto free_bytes = device->free_bytes();
    if (!free_bytes) return fail(free_bytes.error());
    out.gpu_bytes = *free_bytes;
    device->uuid().copy(out.gpu, sizeof out.gpu);
    out.device = device->ordinal();
    put(out.device_name, device->name());
  }
  out.pid = ::getpid();
  out.local_rank = drun_local_rank();
  char host[64] = {};
  ::gethostname(host, sizeof host - 1);
  put(out.host, host);
  // drun sets this variable to the NIC that it chose, for all programs.
  const char* nic = std::getenv("GLOO_SOCKET_IFNAME");
  put(out.nic, nic == nullptr ? "" : nic);
  out.line_rate = line_rate("/sys", out.nic).value_or(0);
  return out;
}

std::string giga(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3g", value / kGiga);
  return text;
}

void find_line_rate(const std::vector<Words>& all, Ranks& ranks) {
  const auto slowest = std::min_element(all.begin(), all.end(),
                                        [](const Words& a, const Words& b) { return a.line_rate < b.line_rate; });
  const std::string nic = std::string(slowest->nic[0] != '\0' ? slowest->nic : "the NIC") + " on " + slowest->host;
  if (slowest->line_rate == 0) {
    ranks.bound_text = "unknown: the kernel does not say how fast " + nic + " is";
    return;
  }
  ranks.bound.kind = BoundKind::kLineRate;
  ranks.bound.bytes_per_second = static_cast<double>(slowest->line_rate) / 8;
  ranks.bound_text = "line rate, " + giga(static_cast<double>(slowest->line_rate)) + " Gb/s (" + nic + ")";
}

// Max size of one buffer on all ranks. `ranks`: their hosts.
std::uint64_t common_limit(const std::vector<Words>& all, const Ranks& ranks, bool on_gpu) {
  std::vector<std::string> gpus;
  for (const Words& w : all) gpus.emplace_back(w.gpu, sizeof w.gpu);
  const auto n_on_gpu = ranks_on_gpu(ranks.host_of_rank, gpus);
  std::uint64_t out = std::numeric_limits<std::uint64_t>::max();
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    RankMemory memory;
    memory.host_bytes = all[rank].host_bytes;
    memory.n_on_host = ranks.ranks_of_host[ranks.host_of_rank[rank]];
    memory.gpu_bytes = all[rank].gpu_bytes;
    memory.n_on_gpu = on_gpu ? n_on_gpu[rank] : 0;
    out = std::min(out, max_buffer_bytes(memory));
  }
  return out;
}

}  // namespace

Result<void> checked(int drun_status) {
  if (drun_status == DRUN_OK) return {};
  return fail(Errc::kInternal, "", drun_last_error());
}

Result<Ranks> meet(const Device* device) {
  const auto size = static_cast<std::size_t>(drun_size());
  std::vector<Words> all(size);
  const auto own = own_words(device);
  if (!own) return fail(own.error());
  if (auto ok = checked(drun_allgather(&*own, all.data(), sizeof(Words), DRUN_UINT8, DRUN_COMM_WORLD, nullptr)); !ok) {
    return fail(std::move(ok.error()));
  }
  Ranks out;
  for (std::size_t rank = 0; rank < size; ++rank) {
    const Words& w = all[rank];
    RankPlace place;
    place.rank = static_cast<int>(rank);
    place.pid = w.pid;
    place.local_rank = w.local_rank;
    place.host = w.host;
    place.device = w.device;
    place.device_info = w.device_name;
    out.places.push_back(std::move(place));
    if (w.local_rank == 0) out.ranks_of_host.push_back(0);  // ranks are packed host by host
    ++out.ranks_of_host.back();
    out.host_of_rank.push_back(out.ranks_of_host.size() - 1);
  }
  out.max_bytes = common_limit(all, out, device != nullptr);
  if (device != nullptr) {
    out.bound_text = "unknown: nothing is known of the ways between GPUs";
    return out;
  }
  if (out.ranks_of_host.size() > 1) {
    find_line_rate(all, out);
    return out;
  }
  const std::size_t n = std::clamp(kCopyOfHost / size, kMinCopy, kMaxCopy);
  const std::vector<char> from(n, 1);
  std::vector<char> to(n, 2);
  const auto speed = copy_speed(to.data(), from.data(), n);
  if (!speed) return fail(speed.error());
  out.bound.kind = BoundKind::kMemory;
  out.bound.bytes_per_second = *speed;
  out.bound_text = "memory bandwidth, " + giga(*speed) + " GB/s (" + plural(size, "rank") + " copying at once)";
  return out;
}

}  // namespace drun::bench
