// Describes what every rank was doing when a deadline passed: asks the agents, waits for a limited time, and formats
// the answers.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/asio.h"
#include "control/messages.h"
#include "launcher/connect/agent_channel.h"
#include "launcher/plan/placement.h"

namespace drun::launcher {

struct RankState {
  int rank = 0;
  std::string host;
  bool joined = false;                          // joined the rendezvous
  std::optional<control::Described> described;  // none: its agent did not answer in time
};

// Pure, like all functions here. A line per rank: "rank 0 on node1: pid 12 (train) sleeps in do_sys_poll, 1.2 s of CPU,
// joined".
std::string describe_ranks(const std::vector<RankState>& ranks);
// Each different stack once, without addresses and process numbers, with the ranks that have it; and the reasons why
// other ranks have none. May be empty.
std::string describe_stacks(const std::vector<RankState>& ranks);
// The frames of eu-stack, gdb or py-spy, thread by thread; threads with the same frames are merged.
std::string plain_stack(const std::string& output);

// One request to all agents. Owned by the job, which passes the agents' answers to take().
class RankSnapshots {
 public:
  explicit RankSnapshots(asio::io_context& io) : changed_(io.get_executor()) {}
  // `joined`: ranks that are in the rendezvous. Returns when all agents have answered, on cancel(), or at the latest a
  // little after `stacks` (0: without stacks). May be called once.
  Task<std::vector<RankState>> ask(std::vector<AgentChannel*> hosts, const Placement& placement,
                                   std::vector<int> joined, std::chrono::milliseconds stacks);
  void take(control::Described message);
  void cancel();

 private:
  std::vector<RankState> ranks_;
  std::size_t n_open_ = 0;
  bool canceled_ = false;
  Event changed_;
};

}  // namespace drun::launcher
