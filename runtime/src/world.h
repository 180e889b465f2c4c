// The job as this process sees it: who it is, who the others are, and the services that all parts share.
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
#include "runtime/src/failure.h"
#include "runtime/src/gpu/presence.h"
#include "runtime/src/operation.h"
#include "runtime/src/recorder.h"

namespace drun::runtime {

struct Timeouts {
  std::chrono::milliseconds init{120'000};
  std::chrono::milliseconds op{300'000};
};

struct World {
  std::unique_ptr<rendezvous::Client> client;
  rendezvous::JobKey key{};
  std::string data_address = "127.0.0.1";  // where our own connections listen
  Timeouts timeouts;
  int n_streams = 1;  // TCP connections between two ranks
  // Of every allreduce over the network, the same on all ranks: for measurements. Nothing: by size.
  std::optional<AllreduceAlgorithm> allreduce;
  // That this process has not used: handles of communicators of an earlier job are not of this one.
  std::uint32_t first_comm = kFirstCommOfSplit;
  Fd memory;                           // shared by the ranks of this host; closed: there is none
  std::shared_ptr<Recorder> recorder;  // nullptr: nobody reads one
  gpu::Presence gpu = gpu::Presence::kNoDriver;
  std::function<void()> on_gpu;  // called once the first communicator is in NCCL: somebody shall look() now and then
  // For how long this process was stopped (Ctrl-Z) since it began, in nanoseconds, as somebody keeps it up to date
  // while GPUs are in use. nullptr: nobody does.
  std::shared_ptr<const std::atomic<std::int64_t>> stopped_ns;
  mutable std::uint64_t n_wait_notes = 0;  // that this rank has written, see WaitNote
  int interrupt_fd = -1;                   // readable once drun_abort was called; not owned

  Clock::duration stopped() const { return std::chrono::nanoseconds(stopped_ns ? stopped_ns->load() : 0); }
  int rank() const { return client->welcome().rank; }
  int size() const { return client->welcome().size; }
  std::string host_of(int rank) const;
  std::string name_of(int rank) const;  // "rank 3 on node7"
};

// A key of the runtime's own, which no key of the program is like: "drun/NAME".
std::string own_key(const std::string& name);

// What ended the job, if something did: the launcher's ABORT or our own drun_abort. Does not block. `during` is what
// the text says was going on: "allreduce #12".
Status check_alive(const World& world, const std::string& during);

// The first rank whose collective fails for a reason of its own writes it down, so that those who merely see its
// connections close can name it.
void publish_failure(const World& world, const Failure& failure);
// Said by a rank that leaves in an orderly way, for those who wait for it and have no connection that could close.
void publish_leaving(const World& world);
bool has_left(const World& world, int rank, std::chrono::milliseconds wait);
// What another rank wrote so, if within `wait` one did, or the ABORT that has come meanwhile.
std::optional<Failure> published_failure(const World& world, const std::string& during, std::chrono::milliseconds wait);
// A peer's connection closed: waits up to a second for an ABORT or a published failure that tells why. `ended` is asked
// after that: its process, if that is known to be no more; else 0. (Sockets close before a process has ended.)
Failure explain_closed(const World& world, int peer, const std::string& during,
                       const std::function<pid_t()>& ended = {});

}  // namespace drun::runtime
