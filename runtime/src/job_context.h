// The job as this process sees it: its own rank, its peers, and the services that all parts share.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/fd.h"
#include "rendezvous/client.h"
#include "runtime/src/algorithm/choice.h"
#include "runtime/src/call_deadline.h"
#include "runtime/src/failure.h"
#include "runtime/src/gpu/presence.h"
#include "runtime/src/operation.h"
#include "runtime/src/recorder.h"

namespace drun::runtime {

struct Timeouts {
  std::chrono::milliseconds init{120'000};
  std::chrono::milliseconds op{300'000};
};

struct JobContext {
  std::unique_ptr<rendezvous::Client> client;
  rendezvous::JobKey key{};
  std::string data_address = "127.0.0.1";  // address at which this rank listens
  Timeouts timeouts;
  int n_streams = 1;  // TCP connections between two ranks
  // Algorithm of every allreduce over the network, the same on all ranks; for measurements. nullopt: chosen by size.
  std::optional<AllreduceAlgorithm> allreduce;
  // First communicator number that this process has not used, so that handles of an earlier job are invalid in this
  // one.
  std::uint32_t first_comm = kFirstCommOfSplit;
  Fd memory;                           // shared by the ranks of this host; closed if there is none
  std::shared_ptr<Recorder> recorder;  // nullptr if there is none
  gpu::Presence gpu = gpu::Presence::kNoDriver;
  std::function<void()> on_gpu;  // called when NCCL is set up: from then on poll() must be called periodically
  // Time for which this process has been stopped (Ctrl-Z) since it began, in nanoseconds. Updated while GPUs are in
  // use; nullptr if it is not measured.
  std::shared_ptr<const std::atomic<std::int64_t>> stopped_ns;
  // Everything that waits in the call under way uses it. With one for each, a wait of one would look to the next like a
  // stop of this process.
  mutable CallDeadline call_deadline;
  mutable std::uint64_t n_wait_notes = 0;  // number of notes that this rank has written, see WaitNote
  int interrupt_fd = -1;                   // readable once drun_abort was called; not owned

  Clock::duration stopped() const { return std::chrono::nanoseconds(stopped_ns ? stopped_ns->load() : 0); }
  int rank() const { return client->welcome().rank; }
  int size() const { return client->welcome().size; }
  std::string host_of(int rank) const;
  std::string name_of(int rank) const;  // "rank 3 on node7"
};

// A key of the runtime itself, distinct from all keys of the program: "drun/NAME".
std::string own_key(const std::string& name);

// Fails if the job was ended, by the launcher's ABORT or by our own drun_abort. Does not block. `during` names the call
// for the text: "allreduce #12".
Status check_alive(const JobContext& job_context, const std::string& during);

// Publishes a failure that this rank has detected, so that ranks that merely see its connections close can name it, and
// reports it to the launcher. Only the first one published in a job counts.
void publish_failure(const JobContext& job_context, const Failure& failure);
// The same for a failure of this rank, which it is attributed to; returns it.
tl::unexpected<Failure> publish_own_failure(const JobContext& job_context, Failure failure);
// Publishes that this rank leaves in an orderly manner, for ranks that wait for it and have no connection that could
// close.
void publish_leaving(const JobContext& job_context);
bool has_left(const JobContext& job_context, int rank, std::chrono::milliseconds wait);
// check_alive(), and every 500 ms also the failure that another rank has published: for waits in which no connection
// closes. `asked`: when this was last asked for; the caller keeps it between calls.
Status check_others(const JobContext& job_context, const std::string& during, Clock::time_point& asked);
// Returns the failure that another rank published, waiting for it up to `wait`, or the ABORT that has come meanwhile.
std::optional<Failure> published_failure(const JobContext& job_context, const std::string& during,
                                         std::chrono::milliseconds wait);
// Explains why a peer's connection closed: waits up to a second for an ABORT or a published failure that gives the
// reason. `ended` is called after that, because sockets close before a process has ended; it returns the pid of the
// peer's process if that is known to have ended, else 0.
Failure explain_closed(const JobContext& job_context, int peer, const std::string& during,
                       const std::function<pid_t()>& ended = {});

}  // namespace drun::runtime
