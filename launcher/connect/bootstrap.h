// Starts an agent on a host that may never have seen drun: the one remote command, the delivery of the agent by content
// hash, and the hello.
#pragma once

#include <functional>
#include <string>

#include "base/asio.h"
#include "base/error.h"
#include "control/frames.h"
#include "control/messages.h"
#include "transport/phase.h"
#include "transport/transport.h"

namespace drun::launcher {

// The agent binary that belongs to this drun.
struct AgentBinary {
  std::string path;  // on this host
  std::string bytes;
  // The bytes compressed, empty if they were not: of hosts with both programs, those with zstd unpack in half the time.
  std::string gzip, zstd;
  std::string sha256;   // hex; the first 16 digits name the file in a host's cache
  std::string machine;  // uname -m of the machines it runs on
};

// Searches for the program beside drun's own executable, then in ../libexec/drun. Fills in path and machine only, which
// suffices for this host.
Result<AgentBinary> find_agent_binary(const std::string& program);
// Fills in the rest, which other hosts need: 10 ms or more of reading and hashing.
Result<void> load_agent_binary(AgentBinary& agent);

// The remote command: `exec /bin/sh -c '...'` without a single quote, '!' or backslash inside, so that every login
// shell, including csh and fish, passes it on unchanged. `nonce` marks its answers in the output of rc files.
// `delivers_anew`: executes no agent that the host has, because that one is damaged; the new one gets another name, by
// which it is found first from then on.
std::string bootstrap_command(const AgentBinary& agent, const std::string& nonce, const std::string& agent_path,
                              bool delivers_anew = false);

// Called with the path of the host's own agent when the host executes that. May close the channel later.
using OnCached = std::function<void(std::string)>;

// Reads until the agent's magic, delivers the agent if the host requests it (again for each directory in which it had
// no room), then reads the hello. Bytes beyond the hello stay in `parser`. Errors: kUnreachable, with what the host
// printed instead; kProtocol for a malformed answer. `on_phase` (may be null) is called when the host begins to answer
// and while the agent is being delivered. `login` is what a user types before a command to run it there, for
// hints (`ssh -p 12345 host1`), or empty.
Task<Result<control::Hello>> bring_agent(transport::Channel& channel, const AgentBinary& agent, std::string nonce,
                                         std::string host, std::string login, control::FrameParser& parser,
                                         const OnCached& on_cached, const transport::OnPhase* on_phase = nullptr);

// True if OpenSSH's client, which does not try again by itself, seems to have ended because a server on the way closed
// the connection before its banner: so does an sshd with too many logins at once (MaxStartups). Judged by its words.
bool was_dropped(const transport::Channel& channel);

}  // namespace drun::launcher
