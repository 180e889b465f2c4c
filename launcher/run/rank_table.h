// Every rank of a job: where it runs and what has become of its process. The supervisor and JobState write it;
// JoinTracker, CollectiveProgress, the timeline and the report read it. Pure.
//
//   planned -> running   its agent has started the process
//           -> over      its agent could not start it
//   running -> exited    the process has ended; its output may still be on its way
//           -> over      both of its outputs have ended, or its host is lost
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "control/messages.h"
#include "launcher/plan/placement.h"
#include "launcher/report/last_lines.h"

namespace drun::launcher {

struct RankEntry {
  int rank = 0;
  int local_rank = 0;
  int host = 0;           // index of the used hosts
  int pid = 0;            // 0: no process was started
  bool answered = false;  // its agent has said whether the process started
  bool joined = false;    // the rendezvous, at least once
  bool exited = false;    // there is no process, or none any more
  bool over = false;      // exited, and nothing more will be heard of it
  bool ended_by_drun = false;
  int open_streams = 2;                   // stdout and stderr
  std::optional<int> wait_status;         // as from waitpid; nothing: it runs, or its host is lost
  std::int64_t started_ns = 0;            // CLOCK_MONOTONIC of the head
  double seconds = 0;                     // from its start to its end
  std::optional<std::uint64_t> ended_ns;  // CLOCK_MONOTONIC of its host
  std::string complaint;                  // of the libdrun in it: which peer failed it
  LastLines last_lines;
};

// Ranks that the table does not have are ignored by every event, as they come from other processes.
class RankTable {
 public:
  // By used host. May be called again before the first event.
  void place(const Placement& placement, std::vector<std::string> host_names);

  bool has(std::uint64_t rank) const { return rank < ranks_.size(); }
  std::size_t size() const { return ranks_.size(); }
  const RankEntry& at(int rank) const { return ranks_[static_cast<std::size_t>(rank)]; }
  auto begin() const { return ranks_.begin(); }
  auto end() const { return ranks_.end(); }
  const std::vector<std::string>& hosts() const { return hosts_; }
  const std::string& host_name(int rank) const { return hosts_[static_cast<std::size_t>(at(rank).host)]; }
  std::string worker_name(int rank) const;  // "rank 3 on node7 (pid 812)"

  std::size_t n_running() const;  // started or about to be, and not exited
  std::size_t n_unanswered() const;
  std::size_t n_unanswered(int host) const;
  std::size_t n_joined() const { return n_joined_; }
  bool all_over() const { return n_over_ == ranks_.size(); }
  bool all_over(int host) const;

  void started(const control::Started& message, std::int64_t now_ns);
  void joined(int rank);
  void complained(int rank, const std::string& text);  // the first complaint of a program counts
  void wrote(const control::Output& message);
  void output_ended(int rank);
  void exited(const control::Exited& message, std::int64_t now_ns);
  // True if it was not over before.
  bool set_over(int rank);

 private:
  RankEntry* find(std::uint64_t rank) { return has(rank) ? &ranks_[rank] : nullptr; }

  std::vector<RankEntry> ranks_;
  std::vector<std::string> hosts_;
  std::size_t n_joined_ = 0, n_over_ = 0;
};

}  // namespace drun::launcher
