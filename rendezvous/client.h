// The blocking client that libdrun uses. C++17, no Boost. One thread at a time. Every wait has a deadline and every
// wait returns at once when ABORT arrives.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"
#include "rendezvous/handshake.h"
#include "rendezvous/protocol.h"  // Welcome, AbortNotice

namespace drun::rendezvous {

class Client {
 public:
  using Milliseconds = std::chrono::milliseconds;
  // Connects, proves the key, joins as `rank`, in the epoch that welcome() says. A rank that is in the job, and does
  // not leave it within a second, is refused (kProtocol).
  static Result<std::unique_ptr<Client>> join(const std::string& address, int port, const JobKey& key, int rank,
                                              Milliseconds timeout);
  virtual ~Client() = default;  // leaves in an orderly way if leave() was not called: closes
  virtual const Welcome& welcome() const = 0;
  // Write-once unless `overwrite`; a second different value is kProtocol.
  virtual Result<void> set(std::string_view key, std::string_view value, bool overwrite = false) = 0;
  // Waits on the server until the key is there: push, no polling. kTimeout names the key.
  virtual Result<std::string> get(std::string_view key, Milliseconds timeout) = 0;
  // All ranks of the job; kTimeout names the ranks that are missing.
  virtual Result<void> barrier(std::string_view name, Milliseconds timeout) = 0;
  // The id (128 bytes) for one communicator and attempt: `make` is called in the rank that is `root`, everybody gets
  // the same bytes. Two attempts never share an id.
  virtual Result<std::string> nccl_id(std::string_view communicator, int attempt, int root,
                                      const std::function<Result<std::string>()>& make, Milliseconds timeout) = 0;
  // Tells the launcher to end the job.
  virtual Result<void> abort(std::string_view why) = 0;
  // Tells the launcher that another rank failed this one, for its report. Waits for no answer.
  virtual void complain(std::string_view text) = 0;
  // Orderly end of this rank: its later disconnect is no failure.
  virtual Result<void> leave() = 0;
  // For poll(): readable when a push may have arrived; then call aborted().
  virtual int fd() const = 0;
  // Takes in what has arrived without blocking. Set once ABORT came, or once the server went away without one.
  virtual std::optional<AbortNotice> aborted() = 0;
};

}  // namespace drun::rendezvous
