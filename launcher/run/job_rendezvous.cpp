#include "launcher/run/job_rendezvous.h"

#include <utility>

#include "base/fd.h"
#include "base/log.h"
#include "base/text.h"

namespace drun::launcher {

std::vector<rendezvous::Member> members_of(const Placement& placement, const std::vector<std::string>& host_names) {
  std::vector<rendezvous::Member> out;
  for (const auto& place : placement.ranks) {
    rendezvous::Member m;
    m.rank = place.rank;
    m.local_rank = place.local_rank;
    m.local_size = place.local_size;
    m.cross_rank = place.cross_rank;
    m.cross_size = place.cross_size;
    m.host_index = place.host;
    m.host = host_names[static_cast<std::size_t>(place.host)];
    out.push_back(std::move(m));
  }
  return out;
}

Result<void> JobRendezvous::start(std::vector<AgentChannel*> hosts, int head, const Placement& placement,
                                  const netdetect::Choice& network, OpenFiles files, rendezvous::ServerEvents events) {
  hosts_ = std::move(hosts);
  head_ = head;
  std::vector<std::string> names;
  for (std::size_t i = 0; i < hosts_.size(); ++i) {
    names.push_back(hosts_[i]->name());
    rendezvous::Handout handout;
    handout.key = key_;
    handout.job_id = job_id_;
    handout.data_address = network.hosts[i].address.text();
    handouts_.push_back(std::move(handout));
    reaches_head_.push_back(head >= 0 ? network.reach[i][static_cast<std::size_t>(head)] : 0);
  }
  for (std::size_t i = 0; i < hosts_.size(); ++i) {
    if (!is_direct(i)) files.n_relayed += static_cast<std::size_t>(placement.local_sizes[i]);
  }
  const auto n_spare = check_open_files(files, raise_open_file_limit());
  if (!n_spare) return fail(n_spare.error());
  server_ = rendezvous::Server::create(io_.get_executor(), key_, members_of(placement, names), job_id_,
                                       std::move(events), *n_spare);
  supervisor_.serve(*server_);
  if (head < 0) return {};
  address_ = network.hosts[static_cast<std::size_t>(head)].address.text();
  auto port = server_->listen(address_);
  if (!port) return fail(std::move(port.error()).with_subject("rendezvous"));
  port_ = *port;
  log::info("rendezvous on " + host_port(address_, port_));
  return {};
}

bool JobRendezvous::is_direct(std::size_t host) const {
  if (head_ < 0) return false;
  const auto head = static_cast<std::size_t>(head_);
  const bool same_net = hosts_[head]->hello().boot_id == hosts_[host]->hello().boot_id &&
                        hosts_[head]->hello().net_namespace == hosts_[host]->hello().net_namespace;
  return head == host || same_net || reaches_head_[host] == 1;
}

Task<Result<void>> JobRendezvous::choose_route(std::size_t host, Deadline deadline) {
  auto& handout = handouts_[host];
  if (is_direct(host)) {
    handout.rendezvous_address = address_;
    handout.rendezvous_port = port_;
    co_return Result<void>();
  }
  AgentChannel& agent = *hosts_[host];
  supervisor_.add_relay(agent);
  auto reply = co_await agent.request(control::Type::kRelayListen, std::string(), control::Type::kRelayListening,
                                      "relay", deadline);
  if (!reply) co_return fail(std::move(reply.error()));
  auto port = control::decode<control::Port>(reply->body);
  if (!port || !port->error.empty()) {
    co_return fail(Errc::kUnreachable, agent.name(), "relay: " + (port ? port->error : port.error().cause));
  }
  handout.rendezvous_address = port->address;
  handout.rendezvous_port = port->port;
  log::info(agent.name() + ": its rendezvous is relayed over the control channel");
  co_return Result<void>();
}

void JobRendezvous::stop() {
  if (server_) server_->stop();
}

Task<void> JobRendezvous::join() {
  if (server_) co_await server_->join();
}

}  // namespace drun::launcher
