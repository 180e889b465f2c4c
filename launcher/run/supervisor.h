// The running job: takes what agents and workers say to JobState, which decides, and does what it decides.
//
// States: those of JobState. One thread; owned by the job.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/asio.h"
#include "launcher/connect/agent_channel.h"
#include "launcher/output/output_writer.h"
#include "launcher/plan/placement.h"
#include "launcher/report/events.h"
#include "launcher/report/job_report.h"
#include "launcher/report/reporter.h"
#include "launcher/run/job_state.h"
#include "rendezvous/horovod_server.h"
#include "rendezvous/relay.h"
#include "rendezvous/server.h"

namespace drun::launcher {

inline constexpr std::uint64_t kRankOver = UINT64_MAX;

class Supervisor {
 public:
  struct Parts {
    std::vector<AgentChannel*> hosts;  // by used host
    Placement placement;
    OutputWriter* output = nullptr;
    // A rank has taken in that many bytes of stdin, or kRankOver: it will take no more. May be empty.
    std::function<void(int rank, std::uint64_t n_bytes)> stdin_taken;
    // Messages about ranks of the job, after ranks() has them. May be empty.
    std::function<void(const control::Started& message)> started;
    std::function<void(const control::Exited& message)> exited;
    Events* events = nullptr;
  };

  Supervisor(asio::io_context& io, Reporter& reporter, std::chrono::milliseconds grace);
  void attach(Parts parts);
  // The same hosts in another order than attach() said, and so other ranks on them. Before activate().
  void place(std::vector<AgentChannel*> hosts, Placement placement);
  // Before add_relay() and activate(). `horovod`: nullptr: the job has none.
  void serve(rendezvous::Server& server, rendezvous::HorovodServer* horovod = nullptr) {
    server_ = &server;
    horovod_ = horovod;
  }
  Result<void> activate() { return state_.activate(time()); }  // JobState's
  // From here on relayed rendezvous streams of this host reach the servers. Once for each host.
  void add_relay(AgentChannel& host);

  // A host speaks for its own ranks only. Any other host that sends `what` about a rank is refused: its channel ends.
  // False also before activate(), when ranks may still move.
  bool speaks_for(AgentChannel& host, std::uint32_t rank, const char* what);
  void on_frame(AgentChannel& host, control::Frame frame);
  void on_lost(AgentChannel& host, const Error& error);
  void on_abort_requested(const rendezvous::Abort& abort);
  // The libdrun of a rank says that another rank failed it.
  void on_complaint(int rank, const std::string& text);
  void on_joined(int rank) { state_.joined(rank); }
  void on_output_broken(const Error& error);
  void stop(int status, const std::string& why);
  void stop_now();
  void forward_signal(int number);

  Task<void> wait();  // until the job is over; bounded by the deadline of its end
  const RankTable& ranks() const { return state_.ranks(); }
  bool stopping() const { return state_.stopping(); }
  // After wait().
  int status() const { return state_.status(); }
  JobReport report() const { return state_.report(); }
  std::vector<std::string> unfinished_hosts() const { return state_.unfinished_hosts(); }

 private:
  static JobTime time() { return JobTime{Clock::now(), monotonic_ns()}; }
  std::size_t index_of(const AgentChannel& host) const;
  void on_output(AgentChannel& host, control::Output message);
  void on_output_end(AgentChannel& host, const control::Output& message);
  void on_relay(AgentChannel& host, control::Type type, control::Relay message);
  void act();
  void perform(const SendStop& action);
  void perform(const AbortRanks& action);
  void perform(const StopOrdered& action);
  void perform(const StdinOver& action);
  void perform(const Say& action);
  void perform(const Log& action);

  asio::io_context& io_;
  Reporter& reporter_;
  Parts parts_;
  rendezvous::Server* server_ = nullptr;
  rendezvous::HorovodServer* horovod_ = nullptr;
  JobState state_;
  std::map<const AgentChannel*, std::shared_ptr<rendezvous::RelaySink>> relays_;
  std::set<std::string> notices_;  // of agents, that the user has seen
  Event changed_;                  // the state
};

}  // namespace drun::launcher
