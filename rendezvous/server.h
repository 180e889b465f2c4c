// The rendezvous server in drun: ranks, keys and values, barriers, NCCL ids, ABORT. One thread, Asio coroutines.
#pragma once

#include <boost/asio/generic/stream_protocol.hpp>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/asio.h"
#include "base/error.h"
#include "rendezvous/handshake.h"

namespace drun::rendezvous {

// What the server tells about each rank, in rank order. From the launcher's placement.
struct Member {
  int rank = 0;
  int local_rank = 0, local_size = 1;
  int cross_rank = 0, cross_size = 1;
  int host_index = 0;
  std::string host;     // for messages
};

// Why a job ends early. rank -1: not a worker's doing.
struct Abort {
  int rank = -1;
  std::string host;
  int pid = 0;
  std::string why;
};

struct ServerEvents {
  std::function<void(int rank, int pid)> joined;
  std::function<void(const Abort&)> abort_requested;  // a worker called drun_abort
};

// Owned by the job. Ends by stop() and join(); the destructor requires both to be over.
class Server {
 public:
  static std::unique_ptr<Server> create(const asio::any_io_executor& executor, const JobKey& key,
                                        std::vector<Member> members, std::string job_id, ServerEvents events);
  virtual ~Server() = default;
  // Binds to this address only, a free port, a backlog for a thousand. Returns the port. May be called not at all
  // (all relayed) or once.
  virtual Result<int> listen(const std::string& address) = 0;
  // A connection that came another way: the far end of a relay.
  virtual void adopt(asio::generic::stream_protocol::socket socket) = 0;
  // Pushes ABORT to every connection, now and to those that come later; the first call counts.
  virtual void abort(const Abort& reason) = 0;
  // Ranks that have joined and not left.
  virtual std::vector<int> joined() const = 0;
  virtual void stop() = 0;
  virtual Task<void> join() = 0;
};

}  // namespace drun::rendezvous
