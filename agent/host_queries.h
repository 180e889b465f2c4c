// Answers drun's questions about this host and its workers. Each answer comes from children or connections with a
// deadline, so that nothing here blocks the agent. Owned by the agent; runs on its thread.
//
// States: open -> ending (end(): no question starts a child any more) -> over (join()).
#pragma once

#include <sys/types.h>

#include <map>
#include <memory>
#include <string>

#include "agent/facts.h"
#include "agent/nccl_ras_client.h"
#include "agent/rank_snapshot.h"
#include "agent/worker_group.h"
#include "base/asio.h"
#include "control/frame_queue.h"
#include "control/messages.h"

namespace drun::agent {

class HostQueries {
 public:
  // The environment that all workers of a job share.
  using Environment = std::map<std::string, std::string>;

  // `workers` must outlive this.
  HostQueries(asio::io_context& io, control::FrameQueue& to_drun, const WorkerGroup& workers);

  // Describes what the workers are doing: one kDescribed per worker. Tools are searched in the PATH of the first call.
  void describe(const control::Describe& order, const Environment& environment);
  // Facts about the host, for `drun check`. Ignored while an earlier order is carried out; drun sends no more.
  void ask_facts(control::AskFacts order);
  // The report of NCCL's RAS service on all ranks. No answer if there is none. Ignored while it is being asked.
  void ask_ras(const Environment& environment);
  // Warns drun if no other host reaches the address of this host's own name. Only the first call counts.
  void check_own_name(const Environment& environment);
  // Shows or ends leftovers of earlier jobs, for `drun clean`, in a child. `guard`: the pid of this agent's guard.
  void clean(control::Clean order, pid_t guard);

  // The agent has reaped this child of its own: its pid may be reused from now on.
  void reaped(pid_t pid);
  void end();
  Task<void> join() { return tasks_.join(); }

 private:
  Task<void> send_facts(control::AskFacts order);
  Task<void> send_ras(std::string address);
  Task<void> send_own_name(Environment environment);
  Task<void> send_cleaned(control::Clean order, pid_t guard);

  asio::io_context& io_;
  control::FrameQueue& to_drun_;
  const WorkerGroup& workers_;
  ForkedCalls cleaning_;
  TaskGroup tasks_;
  std::unique_ptr<SnapshotReader> snapshots_;
  std::unique_ptr<FactsGatherer> facts_;  // set while facts are gathered
  std::unique_ptr<NcclRasClient> ras_;    // set while NCCL is queried
  std::unique_ptr<Tools> name_tools_;     // set once the host's name was looked up
  bool is_ending_ = false;
};

}  // namespace drun::agent
