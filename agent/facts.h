// Gathers facts about this host for `drun check`. Reads /proc, /sys and /etc, and runs programs of the host
// concurrently, as children with a deadline. The agent never resolves names itself: getent does.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "agent/forked_call.h"
#include "agent/tool.h"
#include "base/asio.h"
#include "control/messages.h"

namespace drun::agent {

// The root of the host's files: another directory in tests.
struct FactsRoot {
  std::string folder;  // "" = the real root
  std::string at(const std::string& path) const { return folder + path; }
};

// Owned by the agent; runs on its thread. One gather() at a time. stop() ends the programs, and thereby gather(),
// which then returns what is known.
class FactsGatherer {
 public:
  // `path`: directories to search first for programs, as in $PATH.
  FactsGatherer(asio::io_context& io, const std::string& path, FactsRoot root = {})
      : io_(io), tools_(io, path), files_(io), root_(std::move(root)) {}
  Task<control::HostFacts> gather(control::AskFacts question);
  void reaped(pid_t pid) {
    tools_.reaped(pid);
    files_.reaped(pid);
  }
  void stop() {
    tools_.stop();
    files_.stop();
  }

 private:
  struct Question;  // shared by the coroutines of one gather()
  Task<std::string> find_tool(Question& q, std::vector<std::string> names, std::vector<std::string> facts);
  Task<void> ask_glibc(Question& q);
  Task<void> ask_python(Question& q);
  Task<void> ask_ofed(Question& q);
  Task<void> ask_own_name(Question& q);
  Task<void> ask_gpus(Question& q);
  Task<void> read_files(Question& q);
  using ReadFacts = void (*)(const FactsRoot& root, control::HostFacts& facts);
  Task<void> read_shared(Question& q, ReadFacts read, std::vector<std::string> facts, std::string what);
  Task<void> hash_files(Question& q, Deadline deadline);

  asio::io_context& io_;
  Tools tools_;
  ForkedCalls files_;  // reads the user's files, which may be on a dead network file system
  FactsRoot root_;
};

// ---- the parts that only read files

void read_versions(const FactsRoot& root, control::HostFacts& facts);  // from /proc and /sys
// From /usr, which may be on a network file system, as may the files of read_nccl_conf().
void read_library_versions(const FactsRoot& root, control::HostFacts& facts);
void read_machine(const FactsRoot& root, control::HostFacts& facts);
void read_limits(control::HostFacts& facts);
void read_kernel_log(const FactsRoot& root, control::HostFacts& facts);
void read_network(const FactsRoot& root, control::HostFacts& facts);
void read_nccl_conf(const FactsRoot& root, control::HostFacts& facts);
void read_variables(const std::vector<std::string>& patterns, control::HostFacts& facts);
// Hashes the command, and the first of its arguments that is a file: the script in `python3 train.py`. Finds the
// command in the PATH of `environment`.
void hash_command(const control::AskFacts& asked, const std::map<std::string, std::string>& environment,
                  const ReportStep& report, control::HostFacts& facts);
// Reads CLOCK_MONOTONIC and CLOCK_REALTIME at the same moment.
void read_clocks(control::HostFacts& facts);

}  // namespace drun::agent
