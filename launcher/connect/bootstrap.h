// Getting an agent to speak on a host that may never have seen drun: the one remote command, the delivery of the agent
// by content hash, and the hello.
#pragma once

#include <string>

#include "base/asio.h"
#include "base/error.h"
#include "control/frames.h"
#include "control/messages.h"
#include "transport/phase.h"
#include "transport/transport.h"

namespace drun::launcher {

// The agent that this drun brings along.
struct AgentBinary {
  std::string path;  // on this host
  std::string bytes;
  std::string sha256;   // hex; the first 16 digits name the file in a host's cache
  std::string machine;  // uname -m that it runs on
};

// Looks beside drun's own executable, then in ../libexec/drun. Path and machine only, which do on this host.
Result<AgentBinary> find_agent_binary();
// The rest, which other hosts need: 10 ms or more of reading and hashing.
Result<void> load_agent_binary(AgentBinary& agent);

// The remote command: `exec /bin/sh -c '...'` without a single quote, '!' or backslash inside, so that every login
// shell, csh and fish included, passes it on as it is. `nonce` marks its answers among what rc files print.
std::string bootstrap_command(const AgentBinary& agent, const std::string& nonce, const std::string& agent_path);

// Reads until the agent's magic, delivering the agent if it is asked for, then the hello. What was read beyond the
// hello stays in `parser`. Errors: kUnreachable, with what the host printed instead. `on_phase` (may be null) hears
// when the host begins to speak and while the agent travels.
Task<Result<control::Hello>> bring_agent(transport::Channel& channel, const AgentBinary& agent, std::string nonce,
                                         std::string host, control::FrameParser& parser,
                                         const transport::OnPhase* on_phase = nullptr);

}  // namespace drun::launcher
