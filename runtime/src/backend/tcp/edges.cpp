#include "runtime/src/backend/tcp/edges.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <list>
#include <optional>
#include <set>
#include <string>

#include "base/text.h"
#include "runtime/src/backend/tcp/peer_handshake.h"
#include "runtime/src/backend/tcp/socket.h"

namespace drun::runtime {
namespace {

using std::chrono::milliseconds;
constexpr milliseconds kRetry{100};
constexpr milliseconds kLookForRequests{1000};
constexpr milliseconds kRequestWait{100};
constexpr milliseconds kStrangerTime{5000};  // for a connection to prove the key
constexpr std::size_t kMaxStrangers = 256;

// One neighbour that is not connected yet.
struct Edge {
  int peer = -1;
  std::string address;
  int port = 0;
  bool dial = false;       // our turn
  bool passed_on = false;  // we asked them to dial
  std::optional<PeerHandshake> attempt;
  Clock::time_point next_try, began;  // of dialing
  std::string last_error;
};

struct Incoming {
  PeerHandshake handshake;
  Clock::time_point give_up;
};

std::string endpoint_key(const World& world, int rank) { return world.own_key("data/" + std::to_string(rank)); }
std::string request_key(const World& world, int dialer, int waiter) {
  return world.own_key("dial/" + std::to_string(dialer) + "/" + std::to_string(waiter));
}

class Setup {
 public:
  Setup(const World& world, milliseconds patience)
      : world_(world), patience_(patience), deadline_(Clock::now() + world.timeouts.init) {}

  Outcome<std::map<int, Fd>> run() {
    if (auto published = publish_and_look_up(); !published) return tl::unexpected<Failure>(published.error());
    const auto began = Clock::now();
    next_look_ = began + patience_;
    for (auto& edge : edges_) edge.next_try = edge.began = began;
    while (!edges_.empty()) {
      if (auto alive = check_alive(world_, "drun_init"); !alive) return tl::unexpected<Failure>(alive.error());
      if (Clock::now() >= deadline_) return tl::unexpected<Failure>(missing());
      for (auto& edge : edges_) dial(edge);
      look_for_requests();
      wait();
      accept_all();
      step_incoming();
      for (auto& edge : edges_) step_dial(edge);
      edges_.remove_if([this](const Edge& edge) { return connected_.count(edge.peer) != 0; });
    }
    return std::move(connected_);
  }

 private:
  milliseconds left() const {
    return std::max(milliseconds(1), std::chrono::duration_cast<milliseconds>(deadline_ - Clock::now()));
  }

  Status publish_and_look_up() {
    auto listener = listen_on(world_.data_address, 128);
    if (!listener) return tl::unexpected<Failure>(from_error(listener.error(), "drun_init"));
    listener_ = std::move(*listener);
    auto& client = *world_.client;
    const std::string own = listener_.address + " " + std::to_string(listener_.port);
    if (auto set = client.set(endpoint_key(world_, world_.rank()), own); !set) return rendezvous_failure(set.error());
    // Its timeout names the ranks that never came.
    if (auto all = client.barrier(world_.own_key("init"), left()); !all) return init_failure(all.error());
    for (const int peer : neighbours(world_.rank(), world_.size())) {
      auto endpoint = client.get(endpoint_key(world_, peer), left());
      if (!endpoint) return rendezvous_failure(endpoint.error());
      const auto parts = split(*endpoint, ' ');
      const auto port = parts.size() == 2 ? parse_number(parts[1]) : std::nullopt;
      if (!port) return failure(DRUN_ERROR_INTERNAL, "drun_init: bad endpoint of " + world_.name_of(peer));
      Edge edge;
      edge.peer = peer;
      edge.address = parts[0];
      edge.port = static_cast<int>(*port);
      edge.dial = world_.rank() > peer;
      edges_.push_back(std::move(edge));
    }
    return {};
  }

  Status rendezvous_failure(const Error& error) {
    if (auto alive = check_alive(world_, "drun_init"); !alive) return alive;
    return tl::unexpected<Failure>(from_error(error, "drun_init"));
  }

  // The same for the barrier that all ranks meet in, without its name, which is ours.
  Status init_failure(Error error) {
    const auto missing = error.cause.find("; missing: ");
    if (error.code == Errc::kTimeout && missing != std::string::npos) {
      error.cause = "not every rank called drun_init within " + std::to_string(world_.timeouts.init.count() / 1000) +
                    " s" + error.cause.substr(missing);
    }
    return rendezvous_failure(error);
  }

  PeerIdentity identity(int peer) const {
    return {world_.client->welcome().job_id, world_.generation, world_.rank(), peer};
  }

  void dial(Edge& edge) {
    const auto now = Clock::now();
    if (!edge.dial) return;
    // A handshake that is under way may already be complete on their side: it gets more time.
    const bool half_way = edge.attempt && !edge.attempt->connecting();
    if (!edge.passed_on && world_.rank() > edge.peer && now >= edge.began + (half_way ? 3 : 1) * patience_) {
      edge.attempt.reset();
      edge.dial = false;
      edge.passed_on = true;
      if (edge.last_error.empty()) edge.last_error = "no answer";
      (void)world_.client->set(request_key(world_, edge.peer, world_.rank()), "please");
      return;
    }
    if (edge.attempt || now < edge.next_try) return;
    auto fd = start_connect(edge.address, edge.port);
    if (!fd) return dial_failed(edge, fd.error());
    edge.attempt = PeerHandshake::dial(std::move(*fd), world_.key, identity(edge.peer));
  }

  void dial_failed(Edge& edge, const Error& error) {
    edge.attempt.reset();
    edge.last_error = error.message();
    edge.next_try = Clock::now() + kRetry;
  }

  // Has a higher rank that we wait for asked us to dial?
  void look_for_requests() {
    if (Clock::now() < next_look_) return;
    for (auto& edge : edges_) {
      if (edge.dial || edge.peer < world_.rank()) continue;
      if (!world_.client->get(request_key(world_, world_.rank(), edge.peer), kRequestWait)) continue;
      edge.dial = true;
      edge.began = edge.next_try = Clock::now();
    }
    next_look_ = Clock::now() + kLookForRequests;
  }

  void wait() {
    std::vector<pollfd> fds{{listener_.fd.get(), POLLIN, 0}, {world_.client->fd(), POLLIN, 0}};
    if (world_.interrupt_fd >= 0) fds.push_back({world_.interrupt_fd, POLLIN, 0});
    for (const auto& incoming : incoming_)
      fds.push_back({incoming.handshake.fd(), incoming.handshake.poll_events(), 0});
    for (const auto& edge : edges_) {
      if (edge.attempt) fds.push_back({edge.attempt->fd(), edge.attempt->poll_events(), 0});
    }
    (void)::poll(fds.data(), fds.size(), static_cast<int>(std::min(left(), kRetry).count()));
  }

  void accept_all() {
    for (;;) {
      Fd fd(::accept4(listener_.fd.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
      if (!fd) return;
      if (incoming_.size() >= kMaxStrangers) continue;  // closed at once; a rank tries again
      incoming_.push_back(
          {PeerHandshake::accept(std::move(fd), world_.key, identity(-1)), Clock::now() + kStrangerTime});
    }
  }

  void step_incoming() {
    for (auto it = incoming_.begin(); it != incoming_.end();) {
      auto done = it->handshake.step();
      if (done && *done) connected(it->handshake);
      const bool over = !done || *done || Clock::now() >= it->give_up;
      it = over ? incoming_.erase(it) : std::next(it);
    }
  }

  void step_dial(Edge& edge) {
    if (!edge.attempt) return;
    auto done = edge.attempt->step();
    if (!done) return dial_failed(edge, done.error());
    if (*done) connected(*edge.attempt);
  }

  void connected(PeerHandshake& handshake) {
    const int peer = handshake.peer();
    const bool wanted = std::any_of(edges_.begin(), edges_.end(), [&](const Edge& edge) { return edge.peer == peer; });
    if (!wanted || connected_.count(peer) != 0) return;
    Fd fd = handshake.take();
    tune(fd.get(), world_.timeouts.op);
    connected_.emplace(peer, std::move(fd));
  }

  Failure missing() const {
    Failure result;
    result.status = DRUN_ERROR_TIMEOUT;
    result.rank = edges_.front().peer;
    result.host = world_.host_of(result.rank);
    result.text =
        "drun_init timed out after " + std::to_string(world_.timeouts.init.count() / 1000) + " s: no connection with ";
    bool first = true;
    for (const auto& edge : edges_) {
      result.text += (first ? "" : ", ") + world_.name_of(edge.peer) + " at " + host_port(edge.address, edge.port);
      if (!edge.last_error.empty()) result.text += " (" + edge.last_error + ")";
      first = false;
    }
    return result;
  }

  const World& world_;
  milliseconds patience_;
  Clock::time_point deadline_, next_look_;
  Listener listener_;
  std::list<Edge> edges_;  // that are missing
  std::list<Incoming> incoming_;
  std::map<int, Fd> connected_;
};

}  // namespace

std::vector<int> neighbours(int rank, int size) {
  std::set<int> result;
  for (int distance = 1; distance < size; distance <<= 1) {
    result.insert((rank + distance) % size);
    result.insert((rank - distance + size) % size);
  }
  result.erase(rank);
  return {result.begin(), result.end()};
}

Outcome<std::map<int, Fd>> connect_edges(const World& world, milliseconds patience) {
  return Setup(world, patience).run();
}

}  // namespace drun::runtime
