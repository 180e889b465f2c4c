#include "launcher/run/open_files.h"

#include <algorithm>
#include <string>

#include "base/text.h"
#include "rendezvous/server.h"

namespace drun::launcher {

Result<std::size_t> check_open_files(const OpenFiles& files, std::size_t limit) {
  constexpr std::size_t kOwn = 64;
  constexpr std::size_t kPerHost = 4;  // a socket and its duplicate, or the pipes of a child
  constexpr std::size_t kMinSpare = 16;
  const std::size_t per_connection = files.n_relayed > 0 ? 2 : 1;
  const std::size_t job = kOwn + kPerHost * files.n_hosts + (files.has_output_files ? 3 : 1) * files.n_workers +
                          files.n_relayed + (files.serves_horovod ? 2 * files.n_workers : 0);
  const std::size_t need = job + per_connection * kMinSpare;
  if (limit == 0) return rendezvous::kSpareConnections;
  if (limit >= need) return std::min((limit - job) / per_connection, rendezvous::kSpareConnections);
  return fail(Error(Errc::kUsage, "open files",
                    plural(files.n_hosts, "host") + " and " + plural(files.n_workers, "worker") + " need about " +
                        std::to_string(need) + " descriptors, and the hard limit here is " + std::to_string(limit))
                  .with_hint("as root: ulimit -Hn " + std::to_string(need) +
                             "; for good: nofile in /etc/security/limits.conf"));
}

}  // namespace drun::launcher
