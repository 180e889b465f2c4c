// A client of ssh-agent that never blocks the I/O thread.
#pragma once

#include <boost/asio/local/stream_protocol.hpp>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/asio.h"
#include "base/fd.h"

namespace drun::transport {

struct SshAgentKey {
  std::string blob;  // public key, wire format
  std::string comment;
};

// The keys of each ssh-agent, requested once per run. One that can't be reached or is silent for 5 s has no keys.
class SshAgents {
 public:
  explicit SshAgents(asio::io_context& io) : io_(io) {}
  // Keys of kinds that libssh can't read are left out.
  Task<std::vector<SshAgentKey>> keys(std::string socket_path);

 private:
  struct Listing {
    explicit Listing(const asio::any_io_executor& executor) : ready(executor) {}
    Event ready;
    std::vector<SshAgentKey> keys;
  };
  asio::io_context& io_;
  std::map<std::string, std::shared_ptr<Listing>> listings_;
};

// A filter between libssh and ssh-agent for one login. libssh offers every key that ssh-agent lists, in order, so the
// filter lists only `offered` and forwards only signature requests. libssh gives up at the first key for which
// ssh-agent refuses to sign; if it is started again, the filter lists the keys after that one. libssh's end blocks: use
// a helper thread.
class SshAgentFilter {
 public:
  SshAgentFilter(asio::io_context& io, std::string socket_path, std::vector<SshAgentKey> offered);
  // libssh's end, for ssh_set_agent_socket, which owns it. Call once.
  Result<Fd> start(Deadline deadline);
  // The comments of the keys for which ssh-agent has refused to sign.
  const std::vector<std::string>& refused() const { return refused_; }
  // Closes this side's end; libssh sees the end of ssh-agent. Idempotent.
  void stop();
  Task<void> join() { return tasks_.join(); }

 private:
  Task<void> serve(Deadline deadline);
  void drop_through(const std::string& blob);

  asio::io_context& io_;
  std::string socket_path_;
  std::vector<SshAgentKey> offered_;
  std::vector<std::string> refused_;
  asio::local::stream_protocol::socket ours_;
  TaskGroup tasks_;
};

}  // namespace drun::transport
