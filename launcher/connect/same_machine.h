// Proves that two agents share a network namespace. What a Hello claims is no proof: a host that claims another's
// identity would get the other's ranks.
#pragma once

#include "base/asio.h"
#include "launcher/connect/agent_channel.h"

namespace drun::launcher {

// Each agent must reach the other on loopback. Each listener proves a token that only its own agent has got before, so
// the answer is right if one of the two agents is honest. No answer until `deadline` is false, too.
Task<bool> share_loopback(AgentChannel& one, AgentChannel& other, Deadline deadline);

}  // namespace drun::launcher
