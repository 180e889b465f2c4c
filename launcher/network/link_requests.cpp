#include "launcher/network/link_requests.h"

#include <sodium.h>

#include <algorithm>

#include "launcher/network/link_times.h"
#include "netdetect/proof.h"

namespace drun::launcher {

namespace {

using netdetect::Direction;
using netdetect::Link;
using netdetect::LinkResult;
using netdetect::LinkTarget;
using std::chrono::milliseconds;

// Adds the results of one measurement to those of the pair.
void store(const LinkResult& result, bool from_a, Link& link) {
  Direction& out = from_a ? link.forward : link.backward;
  Direction& in = from_a ? link.backward : link.forward;
  if (result.n_round_trips > 0) {
    link.n_round_trips = result.n_round_trips;
    link.rtt_median_us = result.rtt_median_us;
    link.rtt_p99_us = result.rtt_p99_us;
    link.rtt_min_us = result.rtt_min_us;
  }
  out.path_mtu = std::max(out.path_mtu, result.mtu_forward);
  in.path_mtu = std::max(in.path_mtu, result.mtu_backward);
  if (result.forward.n_streams > 0) out.rates.push_back(result.forward);
  if (result.backward.n_streams > 0) in.rates.push_back(result.backward);
  if (result.error.empty()) return;
  if (result.forward.n_streams == 0) out.error = result.error;
  if (result.backward.n_streams == 0) in.error = result.error;
}

}  // namespace

LinkRequests::LinkRequests(asio::io_context& io, std::vector<AgentChannel*> hosts, netdetect::Choice choice,
                           std::uint64_t max_rate)
    : io_(io),
      hosts_(std::move(hosts)),
      choice_(std::move(choice)),
      max_rate_(max_rate),
      token_(netdetect::kTokenBytes, '\0'),
      ports_(hosts_.size(), 0),
      next_id_(randombytes_random()) {
  randombytes_buf(token_.data(), token_.size());
}

Task<std::vector<std::string>> LinkRequests::listen(Deadline deadline) {
  std::vector<std::string> notes;
  TaskGroup group(io_.get_executor());
  for (std::size_t i = 0; i < hosts_.size(); ++i) {
    if (asked_.insert(i).second) group.spawn(listen_on(i, deadline, notes));
  }
  co_await group.join();
  co_return notes;
}

Task<void> LinkRequests::listen_on(std::size_t host, Deadline deadline, std::vector<std::string>& notes) {
  control::LinkListen order;
  order.token = token_;
  std::string body = control::encode(order);
  const auto reply = co_await hosts_[host]->request(control::Type::kLinkListen, std::move(body),
                                                    control::Type::kLinkListening, "links", deadline);
  if (!reply) {
    notes.push_back(reply.error().message());
    co_return;
  }
  const auto port = control::decode<control::Port>(reply->body);
  if (port && port->error.empty()) {
    ports_[host] = port->port;
  } else {
    notes.push_back(hosts_[host]->name() + ": links: " + (port ? port->error : port.error().cause));
  }
}

bool LinkRequests::connects(int from, int to) const {
  const auto f = static_cast<std::size_t>(from), t = static_cast<std::size_t>(to);
  if (hosts_[f]->lost() || hosts_[t]->lost() || ports_[t] == 0) return false;
  if (choice_.hosts[f].address.bytes.empty() || choice_.hosts[t].address.bytes.empty()) return false;  // left out
  return choice_.reach.empty() || choice_.reach[f][t] == 1;
}

LinkTarget LinkRequests::target_of(int client, int server, LinkTarget wish) {
  const auto c = static_cast<std::size_t>(client), s = static_cast<std::size_t>(server);
  wish.id = next_id_++;
  wish.address = choice_.hosts[s].address.text();
  wish.port = ports_[s];
  // Two hosts whose directions work in one family each have addresses of both, and a socket has one.
  const bool is_one_family = choice_.hosts[c].address.family == choice_.hosts[s].address.family;
  if (is_one_family) wish.source = choice_.hosts[c].address.text();
  if (wish.max_rate == 0 || (max_rate_ > 0 && max_rate_ < wish.max_rate)) wish.max_rate = max_rate_;
  return wish;
}

Task<void> LinkRequests::measure(std::size_t client, std::vector<LinkTarget> targets, Deadline deadline,
                                 std::vector<LinkResult>& results) {
  results.assign(targets.size(), {});
  control::LinkRun order;
  order.token = token_;
  order.targets = targets;
  std::string body = control::encode(order);
  // An earlier order that timed out may be answered first.
  AgentChannel::IsMeant is_meant = [id = targets[0].id, n = targets.size(), &results](const control::Frame& reply) {
    auto answer = control::decode<control::LinkResults>(reply.body);
    if (!answer || answer->results.size() != n || answer->results[0].id != id) return false;
    results = std::move(answer->results);
    return true;
  };
  const auto reply = co_await hosts_[client]->request(
      control::Type::kLinkRun, std::move(body), control::Type::kLinkResults, "links", deadline, std::move(is_meant));
  if (reply) co_return;
  for (auto& result : results) result.error = reply.error().message();
}

Task<void> LinkRequests::measure_pair(Link& link, LinkTarget wish, Deadline deadline) {
  const bool from_a = connects(link.a, link.b);
  const int client = from_a ? link.a : link.b, server = from_a ? link.b : link.a;
  if (wish.n_streams > 0) wish.time_ms = count_of(stream_time(link, milliseconds(wish.time_ms)));
  LinkResult failed;
  if (!measurable(link.a, link.b)) {
    const auto a = static_cast<std::size_t>(link.a), b = static_cast<std::size_t>(link.b);
    const std::size_t lost = hosts_[a]->lost() ? a : b;
    failed.error = hosts_[lost]->lost() ? hosts_[lost]->name() + " was lost" : "neither host can connect to the other";
    store(failed, true, link);
    co_return;
  }
  std::vector<LinkTarget> targets;
  targets.push_back(target_of(client, server, std::move(wish)));
  std::vector<LinkResult> results;
  co_await measure(static_cast<std::size_t>(client), std::move(targets), deadline, results);
  store(results[0], from_a, link);
}

Task<void> LinkRequests::measure_loss(Link& link, LinkTarget wish, Deadline deadline) {
  if (link.forward.rates.empty() && link.backward.rates.empty()) co_return;  // nothing large gets through
  Link paced;
  paced.a = link.a;
  paced.b = link.b;
  paced.rtt_min_us = link.rtt_min_us;
  co_await measure_pair(paced, loss_target(link, milliseconds(wish.time_ms)), deadline);
  if (!paced.forward.rates.empty()) link.forward.paced = paced.forward.rates[0];
  if (!paced.backward.rates.empty()) link.backward.paced = paced.backward.rates[0];
}

}  // namespace drun::launcher
