#include "launcher/network/link_tests.h"

#include <sodium.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "netdetect/link_stats.h"
#include "netdetect/link_target.h"
#include "netdetect/proof.h"

namespace drun::launcher {

namespace {

using netdetect::Direction;
using netdetect::HostPair;
using netdetect::Link;
using netdetect::LinkResult;
using netdetect::LinkTarget;
using netdetect::RingRate;
using netdetect::Round;
using std::chrono::milliseconds;

constexpr milliseconds kRequestTime{100};  // order and answer, and the connections of a measurement, on a good network
constexpr milliseconds kMtuTime{70};
constexpr milliseconds kAnswerMargin{3500};  // beyond the expected time of a measurement: the peer has vanished
constexpr milliseconds kShortTimeout{1000};  // while a job waits to start
constexpr milliseconds kFewRoundTrips{300};
constexpr milliseconds kLongestStreams{2000};
constexpr double kRoundTripsOfStreams = 12;  // slow start needs a few before the window begins
constexpr double kSlow = 100e6;              // bits/s: queues of a slow link fill and drain in tenths of a second
constexpr milliseconds kSlowTime{1000};
// Full queues drop packets too. So losses are counted at a rate so low that no queue fills. Segments have full size,
// because a bad cable loses long frames more often than short ones; each is in a frame of its own, at most
// kPacedSegments a second.
constexpr double kMinPaced = 1e6, kPacedShare = 0.25, kPacedSegments = 5000;
constexpr int kHeaders = 72, kUsualMtu = 1500;  // bytes; of IPv6, the longer one, and of TCP with timestamps
constexpr milliseconds kLossTime{200}, kMinLossTime{40}, kLossTimeAgain{300};
constexpr milliseconds kRingStart{150};  // until all agents have their connections
constexpr std::uint32_t kManyStreams = 4;

milliseconds left_until(Deadline deadline) {
  return std::max(milliseconds(0), std::chrono::duration_cast<milliseconds>(deadline - Clock::now()));
}

std::uint32_t count_of(milliseconds time) { return static_cast<std::uint32_t>(time.count()); }

bool slow(const Link& link) {
  const auto is_slow = [](const Direction& d) { return !d.rates.empty() && d.rates[0].bits_per_second < kSlow; };
  return is_slow(link.forward) || is_slow(link.backward);
}

// The parameters for counting the losses of a link whose bandwidth is known: a rate far below that of the slower
// direction.
LinkTarget loss_target(const Link& link, milliseconds time) {
  int mtu = 0;
  double rate = 0;
  for (const Direction* direction : {&link.forward, &link.backward}) {
    const int of_direction = direction->path_mtu > 0 ? direction->path_mtu : kUsualMtu;
    mtu = mtu == 0 ? of_direction : std::min(mtu, of_direction);
    for (const auto& r : direction->rates) rate = rate == 0 ? r.bits_per_second : std::min(rate, r.bits_per_second);
  }
  LinkTarget out;
  out.segment_bytes = static_cast<std::uint16_t>(std::clamp(mtu, 576, 9000) - kHeaders);
  rate = std::min(rate * kPacedShare, kPacedSegments * 8 * out.segment_bytes);
  out.max_rate = static_cast<std::uint64_t>(std::max(rate, kMinPaced));
  // A stream that has lost a retransmission waits for at least 200 ms; the others go on.
  out.n_streams = kManyStreams;
  out.time_ms = count_of(time);
  return out;
}

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

LinkTimes quick_link_times() {
  LinkTimes times;
  times.n_round_trips = 20;
  times.round_trips = milliseconds(100);
  times.bandwidth_min = milliseconds(40);
  times.bandwidth_max = milliseconds(150);
  return times;
}

milliseconds bandwidth_time(const LinkTimes& times, milliseconds left, int n_rounds, milliseconds beside) {
  if (n_rounds <= 0) return times.bandwidth_max;
  const milliseconds each = left / n_rounds - beside;
  if (each < times.bandwidth_min) return milliseconds(0);
  return std::min(each, times.bandwidth_max);
}

bool lost_messages(const Link& link, std::uint32_t n_round_trips) {
  constexpr double kSentAgainUs = 150e3;  // Linux retransmits after 200 ms at the earliest
  if (link.n_round_trips == 0) return true;
  return link.n_round_trips < n_round_trips && link.rtt_p99_us > link.rtt_min_us + kSentAgainUs;
}

milliseconds stream_time(const Link& link, milliseconds time) {
  const milliseconds long_way(static_cast<long>(kRoundTripsOfStreams * link.rtt_min_us / 1000));
  return std::max(time, std::min(long_way, kLongestStreams));
}

LinkCheck::LinkCheck(asio::io_context& io, std::vector<AgentChannel*> hosts, netdetect::Choice choice, LinkTimes times,
                     std::uint64_t max_rate)
    : io_(io),
      hosts_(std::move(hosts)),
      choice_(std::move(choice)),
      times_(times),
      max_rate_(max_rate),
      token_(netdetect::kTokenBytes, '\0'),
      ports_(hosts_.size(), 0),
      next_id_(randombytes_random()) {
  randombytes_buf(token_.data(), token_.size());
}

Task<void> LinkCheck::listen(Deadline deadline) {
  TaskGroup group(io_.get_executor());
  for (std::size_t i = 0; i < hosts_.size(); ++i) {
    if (asked_.insert(i).second) group.spawn(listen_on(i, deadline));
  }
  co_await group.join();
}

Task<void> LinkCheck::listen_on(std::size_t host, Deadline deadline) {
  control::LinkListen order;
  order.token = token_;
  std::string body = control::encode(order);
  const auto reply = co_await hosts_[host]->request(control::Type::kLinkListen, std::move(body),
                                                    control::Type::kLinkListening, "links", deadline);
  if (!reply) {
    notes_.push_back(reply.error().message());
    co_return;
  }
  const auto port = control::decode<control::Port>(reply->body);
  if (port && port->error.empty()) {
    ports_[host] = port->port;
  } else {
    notes_.push_back(hosts_[host]->name() + ": links: " + (port ? port->error : port.error().cause));
  }
}

bool LinkCheck::connects(int from, int to) const {
  const auto f = static_cast<std::size_t>(from), t = static_cast<std::size_t>(to);
  if (hosts_[f]->lost() || hosts_[t]->lost() || ports_[t] == 0) return false;
  if (choice_.hosts[f].address.bytes.empty() || choice_.hosts[t].address.bytes.empty()) return false;  // left out
  return choice_.reach.empty() || choice_.reach[f][t] == 1;
}

bool LinkCheck::measurable(const HostPair& pair) const {
  return connects(pair.first, pair.second) || connects(pair.second, pair.first);
}

LinkTarget LinkCheck::target_of(int client, int server, LinkTarget wish) {
  const auto c = static_cast<std::size_t>(client), s = static_cast<std::size_t>(server);
  wish.id = next_id_++;
  wish.address = choice_.hosts[s].address.text();
  wish.port = ports_[s];
  wish.source = choice_.hosts[c].address.text();
  if (wish.max_rate == 0 || (max_rate_ > 0 && max_rate_ < wish.max_rate)) wish.max_rate = max_rate_;
  return wish;
}

Task<void> LinkCheck::measure(std::size_t client, std::vector<LinkTarget> targets, Deadline deadline,
                              std::vector<LinkResult>& results) {
  results.assign(targets.size(), {});
  control::LinkRun order;
  order.token = token_;
  order.targets = targets;
  std::string body = control::encode(order);
  control::Type type = control::Type::kLinkRun;
  Error error;
  for (;;) {
    const auto reply =
        co_await hosts_[client]->request(type, std::move(body), control::Type::kLinkResults, "links", deadline);
    if (!reply) {
      error = reply.error();
      break;
    }
    auto answer = control::decode<control::LinkResults>(reply->body);
    if (answer && !answer->results.empty() && answer->results[0].id == targets[0].id &&
        answer->results.size() == targets.size()) {
      results = std::move(answer->results);
      co_return;
    }
    // The reply belongs to an earlier order that timed out: the right one follows.
    type = control::Type::kHeartbeat;
    body.clear();
  }
  for (auto& result : results) result.error = error.message();
}

Task<void> LinkCheck::measure_pair(Link& link, LinkTarget wish, Deadline deadline) {
  const bool from_a = connects(link.a, link.b);
  const int client = from_a ? link.a : link.b, server = from_a ? link.b : link.a;
  if (wish.n_streams > 0) wish.time_ms = count_of(stream_time(link, milliseconds(wish.time_ms)));
  LinkResult failed;
  if (!measurable(HostPair(link.a, link.b))) {
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

Task<void> LinkCheck::measure_loss(Link& link, LinkTarget wish, Deadline deadline) {
  if (link.forward.rates.empty() && link.backward.rates.empty()) co_return;  // nothing large gets through
  Link paced;
  paced.a = link.a;
  paced.b = link.b;
  paced.rtt_min_us = link.rtt_min_us;
  co_await measure_pair(paced, loss_target(link, milliseconds(wish.time_ms)), deadline);
  if (!paced.forward.rates.empty()) link.forward.paced = paced.forward.rates[0];
  if (!paced.backward.rates.empty()) link.backward.paced = paced.backward.rates[0];
}

Task<void> LinkCheck::run_pair(Link& link, Step step, LinkTarget wish, Deadline deadline, Idle& idle) {
  co_await (this->*step)(link, std::move(wish), deadline);
  idle.hosts.insert(link.a);
  idle.hosts.insert(link.b);
  idle.changed.notify();
}

Task<void> LinkCheck::run_rounds(const std::vector<Round>& rounds, std::vector<Link>& links, Step step, LinkTarget wish,
                                 milliseconds allowed, Deadline deadline, std::string what) {
  std::map<HostPair, Link*> by_pair;
  for (auto& link : links) by_pair[HostPair(link.a, link.b)] = &link;
  const std::uint32_t n_trips = times_.n_round_trips;
  std::vector<HostPair> left, late;
  Idle idle(io_.get_executor());
  for (const auto& round : rounds) {
    for (const HostPair& pair : round) {
      const bool last = wish.n_streams > 0 && lost_messages(*by_pair.at(pair), n_trips);
      (last ? late : left).push_back(pair);
      idle.hosts.insert({pair.first, pair.second});
    }
  }
  const std::size_t n_pairs = left.size() + late.size();
  const milliseconds trips(wish.round_trips_ms);
  std::set<int> slow_hosts;
  TaskGroup group(io_.get_executor());
  while (Clock::now() + allowed <= deadline) {
    const std::set<int> crawlers =
        wish.n_streams > 0 ? netdetect::crawling_hosts(links, static_cast<int>(wish.n_streams)) : std::set<int>();
    const auto begun_or_skipped = [&](const HostPair& pair) {
      const auto [a, b] = pair;
      const int crawler = crawlers.count(a) > 0 ? a : b;
      if (crawlers.count(crawler) > 0) {
        slow_hosts.insert(crawler);
        return true;
      }
      if (idle.hosts.count(a) == 0 || idle.hosts.count(b) == 0) return false;
      idle.hosts.erase(a);
      idle.hosts.erase(b);
      group.spawn(run_pair(*by_pair.at(pair), step, wish, Clock::now() + trips + allowed + kAnswerMargin, idle));
      return true;
    };
    std::erase_if(left, begun_or_skipped);
    std::set<int> wanted;  // by pairs that are measured first
    for (const auto& [a, b] : left) wanted.insert({a, b});
    std::erase_if(late, [&](const HostPair& pair) {
      return wanted.count(pair.first) == 0 && wanted.count(pair.second) == 0 && begun_or_skipped(pair);
    });
    if (left.empty() && late.empty()) break;
    co_await idle.changed.wait_and_reset();
  }
  co_await group.join();
  left.insert(left.end(), late.begin(), late.end());
  if (!left.empty()) {
    notes_.push_back("no time was left for " + what + " of " + std::to_string(left.size()) + " of " +
                     std::to_string(n_pairs) + " pairs");
  }
  for (const int host : slow_hosts) {
    notes_.push_back(what + " with " + hosts_[static_cast<std::size_t>(host)]->name() +
                     " was measured with some hosts only: it is far slower than others");
  }
}

Task<std::vector<Link>> LinkCheck::first_pass(Deadline deadline) {
  const int n = static_cast<int>(hosts_.size());
  std::vector<HostPair> pairs;
  for (int a = 0; a < n; ++a) {
    for (int b = a + 1; b < n; ++b) {
      const HostPair pair(a, b);
      if (measurable(pair)) pairs.push_back(pair);
    }
  }
  std::vector<Link> links;
  for (const auto& [a, b] : pairs) {
    Link link;
    link.a = a;
    link.b = b;
    links.push_back(std::move(link));
  }
  const auto rounds = netdetect::rounds_of(n, pairs);
  const int n_rounds = static_cast<int>(rounds.size());
  if (n_rounds == 0) co_return links;

  LinkTarget trips;
  const milliseconds share = left_until(deadline) / 4 / n_rounds;
  const milliseconds at_most = std::clamp(share, milliseconds(10), times_.round_trips);
  trips.n_round_trips = times_.n_round_trips;
  trips.round_trips_ms = count_of(at_most);
  trips.path_mtu = true;
  // A host whose every connection is slow, because frames are lost, must not use up the time for the others' bandwidth.
  const Deadline half_way = Clock::now() + left_until(deadline) / 2;
  co_await run_rounds(rounds, links, &LinkCheck::measure_pair, trips, kMtuTime, half_way, "round trips");

  LinkTarget streams;
  streams.n_streams = 1;
  bool four = times_.four_streams;
  const milliseconds for_streams = left_until(deadline) * 4 / 5;  // the rest is for losses
  milliseconds time = bandwidth_time(times_, for_streams, n_rounds * (four ? 2 : 1), kRequestTime);
  if (time.count() == 0 && four) {
    four = false;
    notes_.push_back("no time was left for bandwidth over several connections");
    time = bandwidth_time(times_, for_streams, n_rounds, kRequestTime);
  }
  if (time.count() == 0) time = times_.bandwidth_min;
  streams.time_ms = count_of(time);
  co_await run_rounds(rounds, links, &LinkCheck::measure_pair, streams, time, deadline, "bandwidth");

  LinkTarget paced;
  const milliseconds for_loss = std::min(kLossTime, left_until(deadline) / n_rounds - kRequestTime);
  if (for_loss >= kMinLossTime) {
    paced.time_ms = count_of(for_loss);
    co_await run_rounds(rounds, links, &LinkCheck::measure_loss, paced, for_loss, deadline, "counting losses");
  }
  if (!four) co_return links;
  streams.n_streams = kManyStreams;
  time = bandwidth_time(times_, left_until(deadline), n_rounds, kRequestTime);
  if (time.count() == 0) time = times_.bandwidth_min;
  streams.time_ms = count_of(time);
  co_await run_rounds(rounds, links, &LinkCheck::measure_pair, streams, time, deadline,
                      "bandwidth over several connections");
  co_return links;
}

Task<std::vector<Link>> LinkCheck::measure_again(std::vector<HostPair> pairs, Deadline deadline) {
  std::vector<Link> links;
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    const int n_left = static_cast<int>(pairs.size() - i) * (times_.four_streams ? 2 : 1);
    milliseconds time = bandwidth_time(times_, left_until(deadline), n_left, kRequestTime);
    if (time.count() == 0) time = times_.bandwidth_min;
    if (Clock::now() + time > deadline) {
      notes_.push_back("no time was left to measure " + std::to_string(pairs.size() - i) + " pairs again");
      break;
    }
    Link link;
    link.a = std::min(pairs[i].first, pairs[i].second);
    link.b = std::max(pairs[i].first, pairs[i].second);
    link.again = true;
    LinkTarget wish;
    wish.n_round_trips = times_.n_round_trips;
    wish.round_trips_ms = count_of(times_.round_trips);
    wish.n_streams = 1;
    wish.time_ms = count_of(time);
    co_await measure_pair(link, wish, Clock::now() + times_.round_trips + time + kAnswerMargin);
    // Replaces the measurement with four streams, which can't be faster.
    if (slow(link) && time < kSlowTime && Clock::now() + kSlowTime < deadline) {
      link.forward.rates.clear();
      link.backward.rates.clear();
      wish.n_round_trips = 0;
      wish.time_ms = count_of(kSlowTime);
      co_await measure_pair(link, wish, Clock::now() + kSlowTime + kAnswerMargin);
    } else if (times_.four_streams && link.forward.error.empty() && link.backward.error.empty() &&
               Clock::now() + time < deadline) {
      wish.n_round_trips = 0;
      wish.n_streams = kManyStreams;
      co_await measure_pair(link, wish, Clock::now() + time + kAnswerMargin);
    }
    // Runs even if the time is up: otherwise losses of full queues would be taken for losses of the link.
    wish.time_ms = count_of(slow(link) ? 2 * kLossTimeAgain : kLossTimeAgain);
    co_await measure_loss(link, wish, Clock::now() + milliseconds(wish.time_ms) + kAnswerMargin);
    links.push_back(std::move(link));
  }
  co_return links;
}

Task<std::vector<Link>> LinkCheck::rates(std::vector<HostPair> pairs, milliseconds time, Deadline deadline) {
  std::vector<Link> links;
  for (const auto& [a, b] : pairs) {
    if (Clock::now() + time > deadline) break;
    Link link;
    link.a = std::min(a, b);
    link.b = std::max(a, b);
    LinkTarget wish;
    wish.n_round_trips = 5;
    wish.round_trips_ms = count_of(kFewRoundTrips);
    co_await measure_pair(link, wish, Clock::now() + kFewRoundTrips + kShortTimeout);
    wish.n_round_trips = 0;
    wish.n_streams = 1;
    wish.time_ms = count_of(time);
    const Deadline over = Clock::now() + stream_time(link, time) + kShortTimeout;
    if (link.n_round_trips > 0) co_await measure_pair(link, wish, over);
    links.push_back(std::move(link));
  }
  co_return links;
}

Task<RingRate> LinkCheck::ring(std::vector<int> order, Deadline deadline) {
  RingRate rate;
  const milliseconds room = left_until(deadline) - kRingStart - kRequestTime;
  if (order.size() < 2 || room < times_.bandwidth_min) {
    if (order.size() >= 2) notes_.push_back("no time was left for the ring");
    co_return rate;
  }
  LinkTarget wish;
  wish.n_streams = times_.four_streams ? kManyStreams : 1;
  wish.time_ms = count_of(std::min({room, 2 * times_.bandwidth_max, kLongestStreams}));
  wish.begin_in_ms = count_of(kRingStart);
  struct Place {
    std::size_t position = 0;
    bool sends = true;  // true: the client sends
  };
  std::map<std::size_t, std::vector<LinkTarget>> targets;  // by client
  std::map<std::size_t, std::vector<Place>> places;
  for (std::size_t i = 0; i < order.size(); ++i) {
    const int from = order[i], to = order[(i + 1) % order.size()];
    Place place;
    place.position = i;
    place.sends = connects(from, to);
    if (!place.sends && !connects(to, from)) continue;
    wish.sends = place.sends;
    wish.receives = !place.sends;
    const int client = place.sends ? from : to, server = place.sends ? to : from;
    targets[static_cast<std::size_t>(client)].push_back(target_of(client, server, wish));
    places[static_cast<std::size_t>(client)].push_back(place);
  }
  std::map<std::size_t, std::vector<LinkResult>> results;
  const Deadline end = Clock::now() + kRingStart + milliseconds(wish.time_ms) + kAnswerMargin;
  {
    TaskGroup group(io_.get_executor());
    for (auto& [client, list] : targets) group.spawn(measure(client, std::move(list), end, results[client]));
    co_await group.join();
  }
  rate.order = std::move(order);
  rate.bits_per_second.assign(rate.order.size(), 0);
  for (const auto& [client, list] : places) {
    for (std::size_t k = 0; k < list.size(); ++k) {
      const LinkResult& result = results[client][k];
      const netdetect::Rate& moved = list[k].sends ? result.forward : result.backward;
      rate.bits_per_second[list[k].position] = moved.bits_per_second;
      rate.seconds = std::max(rate.seconds, moved.seconds);
      if (!result.error.empty()) notes_.push_back("ring: " + hosts_[client]->name() + ": " + result.error);
    }
  }
  co_return rate;
}

}  // namespace drun::launcher
