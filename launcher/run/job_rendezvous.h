// The rendezvous of a job: its server in drun, and the route of each host to it.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "base/asio.h"
#include "launcher/connect/agent_channel.h"
#include "launcher/plan/placement.h"
#include "launcher/plan/worker_env.h"
#include "launcher/run/open_files.h"
#include "launcher/run/supervisor.h"
#include "netdetect/choose.h"
#include "rendezvous/agent_socket.h"
#include "rendezvous/horovod_server.h"
#include "rendezvous/server.h"

namespace drun::launcher {

// Owned by the job, on its thread; what it is given outlives it. stop() and join() must have completed before the
// destructor, if start() was called.
class JobRendezvous {
 public:
  JobRendezvous(asio::io_context& io, Supervisor& supervisor, std::string job_id)
      : io_(io), supervisor_(supervisor), job_id_(std::move(job_id)), key_(rendezvous::make_job_key()) {}

  // `head`: the index of the host that runs drun; -1: none, then nothing listens here and every host is relayed.
  // `files`: of the job, without what relays need. Fails if there are too few for them. With files.serves_horovod,
  // Horovod's own rendezvous is served, too.
  Result<void> start(std::vector<AgentChannel*> hosts, int head, const Placement& placement,
                     const netdetect::Choice& network, OpenFiles files, rendezvous::ServerEvents events);
  // Finds the host's routes: directly, if the host reaches the head's address, else relayed by its agent. Horovod's
  // client knows IPv4 only, so it is relayed from hosts of other networks as well.
  Task<Result<void>> choose_route(std::size_t host, Deadline deadline);

  rendezvous::Server* server() { return server_.get(); }  // nullptr before start()
  const rendezvous::JobKey& key() const { return key_; }
  const std::vector<rendezvous::Handout>& handouts() const { return handouts_; }       // by used host
  const std::vector<HorovodRoute>& horovod_routes() const { return horovod_routes_; }  // by used host; or empty
  void stop();
  Task<void> join();

 private:
  bool is_direct(std::size_t host) const;
  Result<void> start_horovod(const Placement& placement, const std::vector<std::string>& host_names,
                             const netdetect::Choice& network, std::size_t n_spare);
  Task<Result<control::Port>> listen_on_host(AgentChannel& agent, bool for_horovod, Deadline deadline);

  asio::io_context& io_;
  Supervisor& supervisor_;
  std::string job_id_;
  rendezvous::JobKey key_;
  std::vector<AgentChannel*> hosts_;
  int head_ = -1;
  std::vector<int> reaches_head_;  // by used host: 1 if it does
  std::unique_ptr<rendezvous::Server> server_;
  std::string address_;  // that the server listens on; "" = it does not listen
  int port_ = 0;
  std::vector<rendezvous::Handout> handouts_;
  std::unique_ptr<rendezvous::HorovodServer> horovod_;  // nullptr: the job has none
  std::string horovod_token_;
  int horovod_port_ = 0;  // 0: it does not listen
  std::vector<HorovodRoute> horovod_routes_;
};

// Pure. `host_names`: by used host.
std::vector<rendezvous::Member> members_of(const Placement& placement, const std::vector<std::string>& host_names);

}  // namespace drun::launcher
