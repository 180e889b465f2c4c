// What the hosts found out about each other when they tried last, kept in files of the user's, so that the same hosts
// with the same addresses need not try again at once. docs/netdetect.md has the rules.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "netdetect/choose.h"

namespace drun::launcher {

// Names everything that the results depend on: drun's version, each host's name and network namespace (which holds its
// boot), what is worth trying (interface, speed, address, ...) and which host is the head. An address or interface that
// comes, goes, changes or loses its carrier makes another key. Pure.
std::string probe_key(const std::vector<netdetect::HostInterfaces>& hosts, const netdetect::Candidates& candidates,
                      int head);

// A directory with a file per key: mode 0600, renamed into place, with a checksum. Whatever can't be read, is not ours,
// broken, too old or from the future counts as not there; nothing here is an error, since all can be found out again.
class ProbeCache {
 public:
  static constexpr std::chrono::seconds kMaxAge{3600};
  static constexpr std::size_t kMaxEntries = 32;  // the oldest make room

  struct Entry {
    std::vector<netdetect::AttemptResult> results;
    std::vector<int> measured_mbps;  // by candidate; netdetect::Candidate
    std::chrono::seconds age{0};
  };
  using Time = std::chrono::system_clock::time_point;

  // `directory`: made when first needed; "" = nothing is kept or found.
  explicit ProbeCache(std::string directory) : directory_(std::move(directory)) {}

  // Results that do not fit the hosts and candidates are not returned.
  std::optional<Entry> load(const std::string& key, std::size_t n_hosts, std::size_t n_candidates, Time now) const;
  // `measured_mbps`: by candidate, or empty: nothing was measured.
  void store(const std::string& key, const std::vector<netdetect::AttemptResult>& results, Time now,
             const std::vector<int>& measured_mbps = {}) const;
  void drop(const std::string& key) const;

 private:
  std::string path(const std::string& key) const { return directory_ + "/probe-" + key; }
  void make_room() const;

  std::string directory_;
};

}  // namespace drun::launcher
