// The blocking client that libdrun uses. C++17, no Boost. One thread at a time. Every wait has a deadline and returns
// at once when ABORT arrives.
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
  // Connects, proves the key and joins as `rank`, in the epoch given by welcome(). Fails with kProtocol if the rank is
  // already in the job and does not leave it within a second.
  static Result<std::unique_ptr<Client>> join(const std::string& address, int port, const JobKey& key, int rank,
                                              Milliseconds timeout);
  virtual ~Client() = default;  // sends LEAVE if leave() was not called, and closes
  virtual const Welcome& welcome() const = 0;
  // The name of the rank's host, for messages; "" for a rank that the job does not have.
  virtual std::string host_of(int rank) const { return welcome().host_of(rank); }
  // Write-once unless `overwrite`; a second different value is kProtocol.
  virtual Result<void> set(std::string_view key, std::string_view value, bool overwrite = false) = 0;
  // Waits until the key is set; the server pushes it, there is no polling. kTimeout names the key. kCanceled as soon as
  // `cancel_fd`, unless it is -1, can be read.
  virtual Result<std::string> get(std::string_view key, Milliseconds timeout, int cancel_fd = -1) = 0;
  // Deletes the key if it exists, and returns whether it did.
  virtual Result<bool> erase(std::string_view key) = 0;
  // A barrier of all ranks of the job; kTimeout names the missing ranks.
  virtual Result<void> barrier(std::string_view name, Milliseconds timeout) = 0;
  // The id (128 bytes) for one communicator and attempt: rank `root` calls `make`, and all ranks get its bytes. Two
  // attempts never share an id. `cancel_fd` is as in get().
  virtual Result<std::string> nccl_id(std::string_view communicator, int attempt, int root,
                                      const std::function<Result<std::string>()>& make, Milliseconds timeout,
                                      int cancel_fd = -1) = 0;
  // Asks the launcher to end the job.
  virtual Result<void> abort(std::string_view why) = 0;
  // Reports to the launcher that another rank made this one fail. Waits for no reply.
  virtual void complain(std::string_view text) = 0;
  // Leaves the job in an orderly way: the disconnect is not a failure.
  virtual Result<void> leave() = 0;
  // For poll(): readable if a push may have arrived; then call aborted().
  virtual int fd() const = 0;
  // Processes what has arrived, without blocking. Has a value once ABORT has arrived or the server is gone without one.
  virtual std::optional<AbortNotice> aborted() = 0;
};

}  // namespace drun::rendezvous
