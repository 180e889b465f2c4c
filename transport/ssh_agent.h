// ssh-agent, spoken to without ever blocking the I/O thread.
#pragma once

#include <boost/asio/local/stream_protocol.hpp>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/asio.h"
#include "base/fd.h"

namespace drun::transport {

struct AgentKey {
  std::string blob;  // public key, wire format
  std::string comment;
};

// The keys of each agent, asked once per run. An agent that can't be reached, or is silent for 5 s, has none.
class SshAgents {
 public:
  explicit SshAgents(asio::io_context& io) : io_(io) {}
  // Keys of kinds that libssh can't read are left out.
  Task<std::vector<AgentKey>> keys(std::string socket_path);

 private:
  struct Listing {
    explicit Listing(const asio::any_io_executor& executor) : ready(executor) {}
    Event ready;
    std::vector<AgentKey> keys;
  };
  asio::io_context& io_;
  std::map<std::string, std::shared_ptr<Listing>> listings_;
};

// Stands between libssh and the agent for one login. libssh offers every key it is told of, in order; so it is told of
// `offered` alone, and only signatures go through to the agent. libssh blocks on its end: that is for a helper thread.
class AgentFilter {
 public:
  AgentFilter(asio::io_context& io, std::string socket_path, std::vector<AgentKey> offered);
  // libssh's end, for ssh_set_agent_socket, which owns it. Call once.
  Result<Fd> start(Deadline deadline);
  // libssh sees the end of the agent. Idempotent.
  void stop();
  Task<void> join() { return tasks_.join(); }

 private:
  Task<void> serve(Deadline deadline);

  asio::io_context& io_;
  std::string socket_path_;
  std::vector<AgentKey> offered_;
  asio::local::stream_protocol::socket ours_;
  TaskGroup tasks_;
};

}  // namespace drun::transport
