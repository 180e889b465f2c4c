// Public key login, in the order that OpenSSH would try the keys. Never a password, never a prompt.
#pragma once

#include <memory>
#include <string>

#include "base/asio.h"
#include "transport/identities.h"
#include "transport/libssh_session.h"
#include "transport/ssh_agent.h"
#include "transport/ssh_config.h"

namespace drun::transport {

// One per transport: keys and ssh-agents are read once for all hosts. The signer thread exists only if there is an
// ssh-agent.
class Login {
 public:
  explicit Login(asio::io_context& io) : io_(io), agents_(io) {}

  // Called after the host key is trusted. Errors are kUnreachable, "login: ...", and say what was tried. Ends when the
  // session is aborted, as by its deadline.
  Task<Result<void>> run(LibsshSession& session, const SshTarget& target, Deadline deadline);

 private:
  asio::io_context& io_;
  IdentityStore identities_;
  SshAgents agents_;
  std::unique_ptr<asio::thread_pool> signer_;

  struct Attempt;
  Task<int> try_agent(Attempt& attempt, std::vector<SshAgentKey> keys);
  Task<int> try_file(Attempt& attempt, const Identity& identity);
};

}  // namespace drun::transport
