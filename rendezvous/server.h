// The rendezvous server in drun: ranks, keys and values, barriers, NCCL ids, ABORT. One thread, Asio coroutines.
#pragma once

#include <boost/asio/generic/stream_protocol.hpp>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/asio.h"
#include "base/error.h"
#include "rendezvous/handshake.h"
#include "rendezvous/member.h"

namespace drun::rendezvous {

// The reason why a job ends early. rank -1: not caused by a worker.
struct Abort {
  int rank = -1;
  std::string host;
  int pid = 0;
  std::string why;
};

// Connections that have not joined, beyond one for each rank that is not in the job.
inline constexpr std::size_t kSpareConnections = 1024;

struct ServerEvents {
  std::function<void(int rank, int pid)> joined;
  // A worker called drun_abort. The server has already pushed ABORT to all ranks.
  std::function<void(const Abort&)> abort_requested;
  // A worker's libdrun reports that another rank made it fail.
  std::function<void(int rank, const std::string& text)> complained;
  // The rank sent LEAVE (orderly), or its connection ended without it.
  std::function<void(int rank, bool orderly)> left;
};

// Owned by the job. stop() and join() end it and must have completed before the destructor. Events are called on the
// server's thread and may call abort() and stop().
class Server {
 public:
  static std::unique_ptr<Server> create(const asio::any_io_executor& executor, const JobKey& key,
                                        std::vector<Member> members, std::string job_id, ServerEvents events,
                                        std::size_t n_spare = kSpareConnections);
  virtual ~Server() = default;
  // Listens on a free port of this address only, with a backlog for a thousand. Returns the port. Called at most once;
  // not at all if all connections are relayed.
  virtual Result<int> listen(const std::string& address) = 0;
  // Serves a connection that listen() has not accepted: the far end of a relay.
  virtual void adopt(asio::generic::stream_protocol::socket socket) = 0;
  // Pushes ABORT to every joined rank now, and to ranks that join later instead of a welcome. Only the first call
  // counts. On return the kernel has the bytes, except for a client that does not read, so stop() may follow at once.
  virtual void abort(const Abort& reason) = 0;
  // Sets what is known about a rank's process ("pid 12 runs"), for messages about a rank that has not joined.
  virtual void note(int rank, std::string text) = 0;
  // Ranks that have joined and not left.
  virtual std::vector<int> joined() const = 0;
  virtual void stop() = 0;
  virtual Task<void> join() = 0;
};

}  // namespace drun::rendezvous
