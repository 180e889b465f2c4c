// Public key login, in the order that OpenSSH would try the keys. Never a password, never a prompt.
#pragma once

#include <memory>
#include <string>

#include "base/asio.h"
#include "launcher/ssh_config.h"
#include "launcher/transport/identities.h"
#include "launcher/transport/libssh_session.h"
#include "launcher/transport/ssh_agent.h"

namespace drun::launcher {

// One per transport: keys and agents are read once for all hosts. The signer thread exists only where there is an
// agent.
class Login {
 public:
  explicit Login(asio::io_context& io) : io_(io), agents_(io) {}

  // After the host key is trusted. Errors are kUnreachable, "login: ...", and say what was tried. A session that
  // is aborted by its deadline ends it.
  Task<Result<void>> run(LibsshSession& session, const SshTarget& target, Deadline deadline);

 private:
  asio::io_context& io_;
  IdentityStore identities_;
  SshAgents agents_;
  std::unique_ptr<asio::thread_pool> signer_;

  struct Attempt;
  Task<int> try_agent(Attempt& attempt, std::vector<AgentKey> keys);
  Task<int> try_file(Attempt& attempt, const Identity& identity);
};

}  // namespace drun::launcher
