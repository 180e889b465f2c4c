// The running job: which workers live, what the agents report, the first failure, and the end of everything.
//
// States: running -> stopping (all workers over, the first failure, an interrupt or a deadline) -> over (every agent
// has said Finished or is lost). One thread; owned by the job.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/asio.h"
#include "launcher/host_link.h"
#include "launcher/output_writer.h"
#include "launcher/placement.h"
#include "launcher/reporter.h"
#include "rendezvous/relay.h"
#include "rendezvous/server.h"

namespace drun::launcher {

inline constexpr std::uint64_t kRankOver = UINT64_MAX;

class Supervisor {
 public:
  struct Parts {
    std::vector<HostLink*> hosts;  // by used host
    Placement placement;
    OutputWriter* output = nullptr;
    // A rank has taken in that many bytes of stdin, or kRankOver: it will take no more. May be empty.
    std::function<void(int rank, std::uint64_t n_bytes)> stdin_taken;
    rendezvous::Server* server = nullptr;
  };

  Supervisor(asio::io_context& io, Reporter& reporter, std::chrono::milliseconds grace);
  void attach(Parts parts);
  // Before this a lost host is only remembered: whoever waits for its answer reports it. An error if one is gone
  // already.
  Result<void> activate();
  // From here on relayed rendezvous streams of this host reach the server.
  void add_relay(HostLink& host);

  void on_frame(HostLink& host, control::Frame frame);
  void on_lost(HostLink& host, Error error);
  void on_abort_requested(const rendezvous::Abort& abort);
  void on_output_broken(Error error);
  // Ends the job. `status` is drun's exit status unless an earlier reason gave one; `why` is what the workers hear.
  void stop(int status, const std::string& why);
  void stop_now();  // no grace
  void forward_signal(int number);

  Task<void> wait();  // until over; bounded by the stop's own deadline
  int status() const { return status_; }
  bool stopping() const { return stopping_; }
  std::vector<std::string> unfinished_hosts() const;

 private:
  struct WorkerRecord {
    int host = 0;
    int pid = 0;
    bool exited = false;
    int open_streams = 2;
    bool over = false;  // it has exited and both outputs have ended, or its host is lost
  };
  struct HostRecord {
    bool finished = false;
    Error lost;  // before activate()
    std::unique_ptr<rendezvous::RelaySink> relay;
  };

  void on_started(HostLink& host, const control::Started& message);
  void on_exited(HostLink& host, const control::Exited& message);
  void first_failure(int status, Error error, const rendezvous::Abort& abort);
  void worker_over(int rank);
  void worker_over_if_drained(int rank);
  void agent_ended(HostLink& host);
  void report_failure();
  void stop_if_all_over();
  void order_stop(std::chrono::milliseconds delay, std::chrono::milliseconds grace);
  void check_over();
  std::string worker_name(int rank) const;
  const std::string& host_name(int rank) const;

  asio::io_context& io_;
  Reporter& reporter_;
  std::chrono::milliseconds grace_;
  Parts parts_;
  std::vector<WorkerRecord> workers_;
  std::map<const HostLink*, HostRecord> hosts_;
  TaskGroup relays_;
  Event over_, deadline_changed_;
  Deadline stop_deadline_ = Deadline::max();
  int status_ = 0;
  bool active_ = false;
  bool failed_ = false;
  // The first failure, shown after the last output of its worker: the error then stands below the traceback.
  std::optional<Error> unreported_;
  int unreported_rank_ = -1;
  bool stopping_ = false;
  int n_over_ = 0;
};

}  // namespace drun::launcher
