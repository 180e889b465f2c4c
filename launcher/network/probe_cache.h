// Results of the last probing, cached in files of the user, so that the same hosts with the same addresses need not be
// probed again soon. docs/netdetect.md has the rules.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "netdetect/choose.h"

namespace drun::launcher {

// A key over everything that the results depend on: drun's version, each host's name and network namespace (which
// includes its boot id), the candidates (interface, speed, address, ...) and which host is the head. The key changes if
// an address or interface comes, goes, changes or loses its carrier. Pure.
std::string probe_key(const std::vector<netdetect::HostInterfaces>& hosts, const netdetect::Candidates& candidates,
                      int head);

// A directory with a file per key: mode 0600, renamed into place, with a checksum. A file that can't be read, belongs
// to another user, is broken, too old or from the future counts as missing. No failure here is an error, because the
// hosts can be probed again.
class ProbeCache {
 public:
  static constexpr std::chrono::seconds kMaxAge{3600};
  static constexpr std::size_t kMaxEntries = 32;  // the oldest are removed

  struct Entry {
    std::vector<netdetect::AttemptResult> results;
    std::vector<int> measured_mbps;  // by candidate; netdetect::Candidate
    std::chrono::seconds age{0};
  };
  using Time = std::chrono::system_clock::time_point;

  // `directory`: created when first needed; "": nothing is stored or found.
  explicit ProbeCache(std::string directory) : directory_(std::move(directory)) {}

  // Returns nothing if the results do not fit the hosts and candidates.
  std::optional<Entry> load(const std::string& key, std::size_t n_hosts, std::size_t n_candidates, Time now) const;
  // `measured_mbps`: by candidate; empty if nothing was measured.
  void store(const std::string& key, const std::vector<netdetect::AttemptResult>& results, Time now,
             const std::vector<int>& measured_mbps = {}) const;
  void drop(const std::string& key) const;

 private:
  std::string path(const std::string& key) const { return directory_ + "/probe-" + key; }
  void make_room() const;

  std::string directory_;
};

}  // namespace drun::launcher
