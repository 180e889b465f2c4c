#include "launcher/network/link_tests.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "netdetect/link_stats.h"
#include "netdetect/rounds.h"

namespace drun::launcher {

namespace {

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
constexpr milliseconds kSlowTime{1000};  // of a link that is_slow()
constexpr milliseconds kLossTime{200}, kMinLossTime{40}, kLossTimeAgain{300};
// With so little time for a pair, 500 segments at best, losses are counted even if that takes so much too long.
constexpr milliseconds kShortLossTime{100}, kLossesLate{1000};
constexpr int kMostPairs = 10;  // of a host, if not all pairs are measured; four hosts try it, and it tries four
constexpr milliseconds kRingStart{150};  // until all agents have their connections

}  // namespace

LinkCheck::LinkCheck(asio::io_context& io, std::vector<AgentChannel*> hosts, netdetect::Choice choice, LinkTimes times,
                     std::uint64_t max_rate)
    : io_(io), hosts_(std::move(hosts)), requests_(io, hosts_, std::move(choice), max_rate), times_(times) {}

Task<void> LinkCheck::listen(Deadline deadline) {
  const std::vector<std::string> notes = co_await requests_.listen(deadline);
  notes_.insert(notes_.end(), notes.begin(), notes.end());
}

Task<void> LinkCheck::run_pair(Link& link, Step step, LinkTarget wish, Deadline deadline, PairScheduler& scheduler,
                               Event& ended) {
  co_await (requests_.*step)(link, std::move(wish), deadline);
  scheduler.end(HostPair(link.a, link.b));
  ended.notify();
}

Task<void> LinkCheck::run_rounds(const std::vector<Round>& rounds, std::vector<Link>& links, Step step, LinkTarget wish,
                                 milliseconds allowed, Deadline deadline, std::string what) {
  std::map<HostPair, Link*> by_pair;
  std::set<HostPair> late;
  for (auto& link : links) {
    const HostPair pair(link.a, link.b);
    by_pair[pair] = &link;
    if (wish.n_streams > 0 && lost_messages(link, times_.n_round_trips)) late.insert(pair);
  }
  PairScheduler scheduler(rounds, late);
  Event ended(io_.get_executor());
  const milliseconds trips(wish.round_trips_ms);
  TaskGroup group(io_.get_executor());
  while (Clock::now() + allowed <= deadline) {
    const std::set<int> crawlers =
        wish.n_streams > 0 ? netdetect::crawling_hosts(links, static_cast<int>(wish.n_streams)) : std::set<int>();
    for (const HostPair& pair : scheduler.begin(crawlers)) {
      const Deadline pair_deadline = Clock::now() + trips + allowed + kAnswerMargin;
      group.spawn(run_pair(*by_pair.at(pair), step, wish, pair_deadline, scheduler, ended));
    }
    if (scheduler.n_waiting() == 0) break;
    co_await ended.wait_and_reset();
  }
  co_await group.join();
  if (scheduler.n_waiting() > 0) {
    notes_.push_back("no time was left for " + what + " of " + std::to_string(scheduler.n_waiting()) + " of " +
                     std::to_string(scheduler.n_pairs()) + " pairs");
  }
  for (const int host : scheduler.skipped_hosts()) {
    notes_.push_back(what + " with " + hosts_[static_cast<std::size_t>(host)]->name() +
                     " was measured with some hosts only: it is far slower than others");
  }
}

Task<std::vector<Link>> LinkCheck::first_pass(Deadline deadline) {
  const int n = static_cast<int>(hosts_.size());
  std::vector<HostPair> pairs;
  for (int a = 0; a < n; ++a) {
    for (int b = a + 1; b < n; ++b) {
      if (requests_.measurable(a, b)) pairs.emplace_back(a, b);
    }
  }
  if (n > netdetect::kAllPairsHosts) pairs = netdetect::limit_pairs(n, pairs, kMostPairs);
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
  co_await run_rounds(rounds, links, &LinkRequests::measure_pair, trips, kMtuTime, half_way, "round trips");

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
  co_await run_rounds(rounds, links, &LinkRequests::measure_pair, streams, time, deadline, "bandwidth");

  co_await count_losses(rounds, links, deadline);
  if (!four) co_return links;
  streams.n_streams = kManyStreams;
  time = bandwidth_time(times_, left_until(deadline), n_rounds, kRequestTime);
  if (time.count() == 0) time = times_.bandwidth_min;
  streams.time_ms = count_of(time);
  co_await run_rounds(rounds, links, &LinkRequests::measure_pair, streams, time, deadline,
                      "bandwidth over several connections");
  co_return links;
}

Task<void> LinkCheck::count_losses(const std::vector<Round>& rounds, std::vector<Link>& links, Deadline deadline) {
  const auto measured = [](const Link& link) { return !link.forward.rates.empty() || !link.backward.rates.empty(); };
  if (std::none_of(links.begin(), links.end(), measured)) co_return;  // the note about bandwidth is enough
  const int n_rounds = static_cast<int>(rounds.size());
  milliseconds time = std::min(kLossTime, left_until(deadline) / n_rounds - kRequestTime);
  // Few hosts: a link that is fast, but loses frames, would look sound.
  if (time < kShortLossTime && n_rounds * (kShortLossTime + kRequestTime) <= kLossesLate) {
    time = kShortLossTime;
    deadline = std::max(deadline, Clock::now() + kLossesLate);
  }
  if (time < kMinLossTime) deadline = Clock::now();  // only for the note
  time = std::max(time, kMinLossTime);
  LinkTarget wish;
  wish.time_ms = count_of(time);
  co_await run_rounds(rounds, links, &LinkRequests::measure_loss, wish, time, deadline, "counting losses");
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
    co_await requests_.measure_pair(link, wish, Clock::now() + times_.round_trips + time + kAnswerMargin);
    // Replaces the measurement with four streams, which can't be faster.
    if (is_slow(link) && time < kSlowTime && Clock::now() + kSlowTime < deadline) {
      link.forward.rates.clear();
      link.backward.rates.clear();
      wish.n_round_trips = 0;
      wish.time_ms = count_of(kSlowTime);
      co_await requests_.measure_pair(link, wish, Clock::now() + kSlowTime + kAnswerMargin);
    } else if (times_.four_streams && link.forward.error.empty() && link.backward.error.empty() &&
               Clock::now() + time < deadline) {
      wish.n_round_trips = 0;
      wish.n_streams = kManyStreams;
      co_await requests_.measure_pair(link, wish, Clock::now() + time + kAnswerMargin);
    }
    // Runs even if the time is up: otherwise losses of full queues would be taken for losses of the link.
    wish.time_ms = count_of(is_slow(link) ? 2 * kLossTimeAgain : kLossTimeAgain);
    co_await requests_.measure_loss(link, wish, Clock::now() + milliseconds(wish.time_ms) + kAnswerMargin);
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
    co_await requests_.measure_pair(link, wish, Clock::now() + kFewRoundTrips + kShortTimeout);
    wish.n_round_trips = 0;
    wish.n_streams = 1;
    wish.time_ms = count_of(time);
    const Deadline over = Clock::now() + stream_time(link, time) + kShortTimeout;
    if (link.n_round_trips > 0) co_await requests_.measure_pair(link, wish, over);
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
  wish.time_ms = count_of(std::min({room, 2 * times_.bandwidth_max, kMaxStreamTime}));
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
    place.sends = requests_.connects(from, to);
    if (!place.sends && !requests_.connects(to, from)) continue;
    wish.sends = place.sends;
    wish.receives = !place.sends;
    const int client = place.sends ? from : to, server = place.sends ? to : from;
    targets[static_cast<std::size_t>(client)].push_back(requests_.target_of(client, server, wish));
    places[static_cast<std::size_t>(client)].push_back(place);
  }
  std::map<std::size_t, std::vector<LinkResult>> results;
  const Deadline end = Clock::now() + kRingStart + milliseconds(wish.time_ms) + kAnswerMargin;
  {
    TaskGroup group(io_.get_executor());
    for (auto& [client, list] : targets) group.spawn(requests_.measure(client, std::move(list), end, results[client]));
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
