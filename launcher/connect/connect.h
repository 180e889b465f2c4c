// Starts agents on hosts that are given by name: all hosts at once, every failure reported, names of one machine
// merged.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/asio.h"
#include "launcher/connect/agent_channel.h"
#include "launcher/connect/bootstrap.h"
#include "launcher/connect/locality.h"
#include "launcher/connect/start_watch.h"
#include "launcher/report/progress.h"
#include "launcher/report/reporter.h"

namespace drun::launcher {

struct ConnectOptions {
  transport::SshOptions ssh;
  bool use_openssh = false;                  // --transport openssh
  std::vector<std::string> launch_agent;     // --launch-agent, split into words
  std::string agent_path;                    // --agent-path: on the hosts
  std::string agent_program = "drun-agent";  // beside drun's own executable: what runs here, and what hosts get
  std::chrono::seconds start_timeout{60};
  std::chrono::milliseconds grace{5000};               // --grace: time that the agent of this host may need to end
  std::chrono::milliseconds heartbeat_timeout{30000};  // an outage of the network that is shorter breaks no connection
  bool keep_reachable = false;  // continue with the reachable hosts; otherwise one failure closes all
  // Reaches the hosts in place of ssh, and finds an agent there: for tests. nullptr: ssh.
  transport::Transport* transport = nullptr;
};

struct Connected {
  std::vector<std::unique_ptr<AgentChannel>> agents;  // one per machine, in the order of the list, slots added
  std::vector<Progress::Times> times;                 // by agent: how long each phase of its start took
  // One per host that failed; then `agents` is empty, unless keep_reachable. kUsage: errors in the ssh config, and no
  // host was tried.
  std::vector<Error> errors;
  int head = -1;  // index of the agent on this machine; -1: not in the list
};

// Opens every host and starts its agent. `hosts` have been through add_slots(). `watch` may be null. A host that hangs
// until the start timeout is Errc::kUnreachable; the error names the phase in which it hangs.
Task<Connected> connect_hosts(asio::io_context& io, asio::thread_pool& helper, AgentChannels& group,
                              std::vector<Host> hosts, ConnectOptions options, Reporter& reporter,
                              StartWatch* watch = nullptr);

}  // namespace drun::launcher
