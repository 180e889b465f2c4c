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
#include "rendezvous/member.h"

namespace drun::rendezvous {

// Why a job ends early. rank -1: not a worker's doing.
struct Abort {
  int rank = -1;
  std::string host;
  int pid = 0;
  std::string why;
};

struct ServerEvents {
  std::function<void(int rank, int pid)> joined;
  // A worker called drun_abort. The server has already pushed it to all the others.
  std::function<void(const Abort&)> abort_requested;
  // A worker's libdrun says that another rank failed it.
  std::function<void(int rank, const std::string& text)> complained;
  // The rank said goodbye (orderly), or its connection ended without that.
  std::function<void(int rank, bool orderly)> left;
};

// Owned by the job. Ends by stop() and join(); the destructor requires both to be over. Events are called on the
// server's thread and may call abort() and stop().
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
  // Pushes ABORT to every rank that has joined, now, and to those that come later instead of a welcome; the first call
  // counts. It is with the kernel when this returns, unless a client does not read: stop() may follow at once.
  virtual void abort(const Abort& reason) = 0;
  // What is known about the process of a rank: "pid 12 runs". Texts about a rank that has not joined say it.
  virtual void note(int rank, std::string text) = 0;
  // Ranks that have joined and not left.
  virtual std::vector<int> joined() const = 0;
  virtual void stop() = 0;
  virtual Task<void> join() = 0;
};

}  // namespace drun::rendezvous
