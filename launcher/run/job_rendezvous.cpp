#include "launcher/run/job_rendezvous.h"

#include <utility>

#include "base/fd.h"
#include "base/log.h"
#include "base/text.h"
#include "rendezvous/horovod_request.h"

namespace drun::launcher {

namespace {
constexpr std::size_t kIpv4Bytes = 4;
}  // namespace

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
  const std::size_t n_horovod_spare = files.serves_horovod ? *n_spare / 2 : 0;
  server_ = rendezvous::Server::create(io_.get_executor(), key_, members_of(placement, names), job_id_,
                                       std::move(events), *n_spare - n_horovod_spare);
  if (head >= 0) {
    address_ = network.hosts[static_cast<std::size_t>(head)].address.text();
    auto port = server_->listen(address_);
    if (!port) return fail(std::move(port.error()).with_subject("rendezvous"));
    port_ = *port;
    log::info("rendezvous on " + host_port(address_, port_));
  }
  if (files.serves_horovod) {
    if (auto started = start_horovod(placement, names, network, n_horovod_spare); !started) return started;
  }
  supervisor_.serve(*server_, horovod_.get());
  return {};
}

Result<void> JobRendezvous::start_horovod(const Placement& placement, const std::vector<std::string>& host_names,
                                          const netdetect::Choice& network, std::size_t n_spare) {
  const auto names = rendezvous::horovod_host_names(host_names);
  rendezvous::HorovodServerOptions options;
  options.scopes = rendezvous::horovod_scopes(members_of(placement, host_names), names);
  options.token = horovod_token_ = rendezvous::make_horovod_token();
  options.max_connections = static_cast<std::size_t>(placement.size) + n_spare;
  horovod_ = rendezvous::HorovodServer::create(io_.get_executor(), std::move(options));
  horovod_routes_.resize(names.size());
  for (std::size_t i = 0; i < names.size(); ++i) horovod_routes_[i].host_name = names[i];
  if (head_ < 0 || network.hosts[static_cast<std::size_t>(head_)].address.bytes.size() != kIpv4Bytes) return {};
  auto port = horovod_->listen(address_);
  if (!port) return fail(std::move(port.error()).with_subject("Horovod's rendezvous"));
  horovod_port_ = *port;
  log::info("Horovod's rendezvous on " + host_port(address_, horovod_port_));
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
  AgentChannel& agent = *hosts_[host];
  const bool relays_horovod = horovod_ && (!is_direct(host) || horovod_port_ == 0);
  if (!is_direct(host) || relays_horovod) supervisor_.add_relay(agent);
  if (is_direct(host)) {
    handout.rendezvous_address = address_;
    handout.rendezvous_port = port_;
  } else {
    auto port = co_await listen_on_host(agent, false, deadline);
    if (!port) co_return fail(std::move(port.error()));
    handout.rendezvous_address = port->address;
    handout.rendezvous_port = port->port;
  }
  if (!horovod_) co_return Result<void>();
  HorovodRoute& route = horovod_routes_[host];
  std::string address = address_;
  route.port = horovod_port_;
  if (relays_horovod) {
    auto port = co_await listen_on_host(agent, true, deadline);
    if (!port) co_return fail(std::move(port.error()));
    address = port->address;
    route.port = port->port;
  }
  route.address = rendezvous::horovod_rendezvous_address(address, route.port, horovod_token_);
  co_return Result<void>();
}

Task<Result<control::Port>> JobRendezvous::listen_on_host(AgentChannel& agent, bool for_horovod, Deadline deadline) {
  control::RelayListen order;
  order.for_horovod = for_horovod;
  auto reply = co_await agent.request(control::Type::kRelayListen, control::encode(order),
                                      control::Type::kRelayListening, "relay", deadline);
  if (!reply) co_return fail(std::move(reply.error()));
  auto port = control::decode<control::Port>(reply->body);
  if (!port || !port->error.empty()) {
    co_return fail(Errc::kUnreachable, agent.name(), "relay: " + (port ? port->error : port.error().cause));
  }
  if (for_horovod && port->address.find(':') != std::string::npos) {
    co_return fail(Errc::kUnreachable, agent.name(), "relay: Horovod needs IPv4, and 127.0.0.1 is not there");
  }
  log::info(agent.name() + (for_horovod ? ": Horovod's rendezvous" : ": its rendezvous") +
            " is relayed over the control channel");
  co_return std::move(*port);
}

void JobRendezvous::stop() {
  if (server_) server_->stop();
  if (horovod_) horovod_->stop();
}

Task<void> JobRendezvous::join() {
  if (server_) co_await server_->join();
  if (horovod_) co_await horovod_->join();
}

}  // namespace drun::launcher
