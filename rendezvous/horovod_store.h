// Values of Horovod's own rendezvous, by scope and key (docs/protocol.md, "Horovod's rendezvous"). Pure: no I/O and no
// clock.
#pragma once

#include <cstddef>
#include <map>
#include <set>
#include <string>

#include "rendezvous/member.h"
#include "rendezvous/protocol.h"

namespace drun::rendezvous {

// The scopes that every start of a job forms, and the number of ranks in each.
using ScopeSizes = std::map<std::string, int>;

// `hosts`: by Member::host_index, the names that the workers know as HOROVOD_HOSTNAME.
ScopeSizes horovod_scopes(const std::vector<Member>& members, const std::vector<std::string>& hosts);

// HOROVOD_HOSTNAME of each host: it is part of a path, and ranks with the same one share a scope. Other characters than
// letters, digits, '.', '-' and '_' become '_'. Names that are equal then get "-1", "-2" and so on.
std::vector<std::string> horovod_host_names(const std::vector<std::string>& names);

struct HorovodStoreLimits {
  std::size_t bytes = 256u << 20;  // total of scopes, keys and values
  std::size_t keys = 1u << 20;
};

class HorovodStore {
 public:
  explicit HorovodStore(ScopeSizes planned, HorovodStoreLimits limits = {})
      : planned_(std::move(planned)), limits_(limits) {}

  // Replaces an earlier value. False, and no change: beyond the limits.
  bool put(const std::string& scope, const std::string& key, SharedBytes value);
  SharedBytes get(const std::string& scope, const std::string& key) const;  // nullptr: there is none
  // The rank `key` has connected to all ranks of the scope. A planned scope keeps its values until all its ranks have
  // finished, and is empty then, for the next start. Any other scope, of a process set, loses the rank's values.
  void finish(const std::string& scope, const std::string& key);

  std::size_t bytes() const { return bytes_; }
  std::size_t keys() const { return n_keys_; }

 private:
  struct Scope {
    std::map<std::string, SharedBytes> values;
    std::set<std::string> finished;  // only of planned scopes
  };
  using Scopes = std::map<std::string, Scope>;
  std::size_t cost(const std::string& scope, const std::string& key, const std::string& value) const;
  void erase(Scopes::iterator scope, const std::string& key);

  ScopeSizes planned_;
  HorovodStoreLimits limits_;
  Scopes scopes_;
  std::size_t bytes_ = 0, n_keys_ = 0;
};

}  // namespace drun::rendezvous
