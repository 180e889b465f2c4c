#include "runtime/src/backend/tcp/links.h"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <set>

#include "base/text.h"

namespace drun::runtime {
namespace {

using std::chrono::milliseconds;
constexpr milliseconds kLook{1000};  // into the rendezvous: were we asked to dial, did somebody fail
constexpr milliseconds kLookWait{100};
constexpr milliseconds kLookUpWait{10'000};
constexpr milliseconds kStrangerTime{5000};  // for a connection to prove the key
constexpr std::size_t kMaxStrangers = 256;
constexpr milliseconds kLongestWait{1000};  // in the rendezvous, between looks at the clock
constexpr int kMostAtOnce = 64;             // accepted, before anything else is looked at
constexpr int kBacklog = 4096;              // all ranks may come while this one is not in a call

std::string endpoint_key(const World& world, int rank) { return world.own_key("data/" + std::to_string(rank)); }
std::string request_key(const World& world, int dialer, int waiter) {
  return world.own_key("dial/" + std::to_string(dialer) + "/" + std::to_string(waiter));
}

}  // namespace

Outcome<std::unique_ptr<Links>> Links::connect(const World& world, milliseconds patience) {
  std::unique_ptr<Links> result(new Links(world, patience));
  if (auto joined = result->join(); !joined) return tl::unexpected<Failure>(joined.error());
  return result;
}

Status Links::join() {
  deadline_ = Clock::now() + world_.timeouts.init;
  StallWatch stops(kLongestWait);
  if (auto published = publish(stops); !published) return published;
  for (const int peer : neighbours(world_.rank(), world_.size())) {
    want(peer);
    if (auto known = look_up(edges_.back(), "drun_init"); !known) return known;
  }
  const auto began = Clock::now();
  deadline_ += stops.look();
  next_look_ = began + patience_;
  for (auto& edge : edges_) edge.next_try = edge.began = began;
  while (!edges_.empty()) {
    deadline_ += stops.look();
    if (auto alive = check_alive(world_, "drun_init"); !alive) return alive;
    if (Clock::now() >= deadline_) return tl::unexpected<Failure>(missing());
    if (auto advanced = advance("drun_init"); !advanced) return advanced;
    if (edges_.empty()) break;
    std::vector<pollfd> fds{{world_.client->fd(), POLLIN, 0}};
    if (world_.interrupt_fd >= 0) fds.push_back({world_.interrupt_fd, POLLIN, 0});
    add_to(fds);
    (void)::poll(fds.data(), fds.size(), static_cast<int>(std::min(left(), kRetry).count()));
  }
  joining_ = false;
  return {};
}

milliseconds Links::left() const {
  return std::max(milliseconds(1), std::chrono::duration_cast<milliseconds>(deadline_ - Clock::now()));
}

Status Links::publish(StallWatch& stops) {
  auto listener = listen_on(world_.data_address, kBacklog);
  if (!listener) return tl::unexpected<Failure>(from_error(listener.error(), "drun_init"));
  listener_ = std::move(*listener);
  auto& client = *world_.client;
  const std::string own = listener_.address + " " + std::to_string(listener_.port);
  if (auto set = client.set(endpoint_key(world_, world_.rank()), own); !set) {
    return rendezvous_failure(set.error(), "drun_init");
  }
  deadline_ += stops.look();
  // Its timeout names the ranks that never came.
  if (auto all = client.barrier(world_.own_key("init"), left()); !all) return init_failure(all.error());
  return {};
}

Status Links::rendezvous_failure(const Error& error, const std::string& during) {
  if (auto alive = check_alive(world_, during); !alive) return alive;
  return tl::unexpected<Failure>(from_error(error, during));
}

// The same for the barrier that all ranks meet in, without its name, which is ours.
Status Links::init_failure(Error error) {
  const auto missing_ranks = error.cause.find("; missing: ");
  if (error.code == Errc::kTimeout && missing_ranks != std::string::npos) {
    error.cause = "not every rank called drun_init within " + std::to_string(world_.timeouts.init.count() / 1000) +
                  " s" + error.cause.substr(missing_ranks);
  }
  return rendezvous_failure(error, "drun_init");
}

int Links::fd(int peer) const {
  const auto link = connected_.find(peer);
  return link != connected_.end() ? link->second.get() : -1;
}

void Links::want(int peer) {
  const auto is_it = [peer](const Edge& edge) { return edge.peer == peer; };
  if (connected_.count(peer) != 0 || std::any_of(edges_.begin(), edges_.end(), is_it)) return;
  if (edges_.empty()) next_look_ = Clock::now() + kLook;
  Edge edge;
  edge.peer = peer;
  edge.dial = world_.rank() > peer;
  edge.next_try = edge.began = Clock::now();
  edges_.push_back(std::move(edge));
}

void Links::add_to(std::vector<pollfd>& fds) const {
  fds.push_back({cannot_accept_ ? -1 : listener_.fd.get(), POLLIN, 0});
  for (const auto& incoming : incoming_) fds.push_back({incoming.handshake.fd(), incoming.handshake.poll_events(), 0});
  for (const auto& edge : edges_) {
    if (edge.attempt) fds.push_back({edge.attempt->fd(), edge.attempt->poll_events(), 0});
  }
}

Status Links::advance(const std::string& during) {
  for (auto& edge : edges_) {
    if (auto dialed = dial(edge, during); !dialed) return dialed;
  }
  if (!edges_.empty() && Clock::now() >= next_look_) {
    if (auto looked = look_into_rendezvous(during); !looked) return looked;
  }
  accept_all();
  step_incoming();
  for (auto& edge : edges_) step_dial(edge);
  edges_.remove_if([this](const Edge& edge) { return connected_.count(edge.peer) != 0; });
  return {};
}

std::string Links::why_not(int peer) const {
  for (const auto& edge : edges_) {
    if (edge.peer != peer) continue;
    std::string text = "no connection";
    if (!edge.address.empty()) text += " with " + host_port(edge.address, edge.port);
    return edge.last_error.empty() ? text : text + ": " + edge.last_error;
  }
  return {};
}

void Links::be_patient_for(milliseconds timeout) {
  if (timeout <= user_timeout_) return;
  user_timeout_ = timeout;
  for (const auto& [peer, fd] : connected_) tune(fd.get(), user_timeout_);
}

void Links::close() {
  connected_.clear();
  edges_.clear();
  incoming_.clear();
  listener_.fd.reset();
}

PeerIdentity Links::identity(int peer) const {
  return {world_.client->welcome().job_id, world_.generation, world_.rank(), peer};
}

// All ranks have published theirs: there is nothing to wait for.
Status Links::look_up(Edge& edge, const std::string& during) {
  auto endpoint = world_.client->get(endpoint_key(world_, edge.peer), kLookUpWait);
  if (!endpoint) return rendezvous_failure(endpoint.error(), during);
  const auto parts = split(*endpoint, ' ');
  const auto port = parts.size() == 2 ? parse_number(parts[1]) : std::nullopt;
  if (!port) return failure(DRUN_ERROR_INTERNAL, during + ": bad endpoint of " + world_.name_of(edge.peer));
  edge.address = parts[0];
  edge.port = static_cast<int>(*port);
  return {};
}

Status Links::dial(Edge& edge, const std::string& during) {
  const auto now = Clock::now();
  if (!edge.dial) return {};
  // A handshake that is under way may already be complete on their side: it gets more time. After drun_init it is not
  // given up at all: the other side is late for the call, perhaps.
  const bool half_way = edge.attempt && !edge.attempt->connecting();
  const bool may_pass_on = !edge.passed_on && world_.rank() > edge.peer && (joining_ || !half_way);
  if (may_pass_on && now >= edge.began + (half_way ? 3 : 1) * patience_) {
    edge.attempt.reset();
    edge.dial = false;
    edge.passed_on = true;
    if (edge.last_error.empty()) edge.last_error = "no answer";
    (void)world_.client->set(request_key(world_, edge.peer, world_.rank()), "please");
    return {};
  }
  if (edge.attempt || now < edge.next_try) return {};
  if (edge.address.empty()) {
    if (auto known = look_up(edge, during); !known) return known;
  }
  auto fd = start_connect(edge.address, edge.port);
  if (!fd) {
    dial_failed(edge, fd.error());
  } else {
    edge.attempt = PeerHandshake::dial(std::move(*fd), world_.key, identity(edge.peer));
  }
  return {};
}

void Links::dial_failed(Edge& edge, const Error& error) {
  edge.attempt.reset();
  edge.last_error = error.message();
  edge.next_try = Clock::now() + kRetry;
}

// Has a higher rank that we wait for asked us to dial?
bool Links::asked_to_dial(Edge& edge) {
  if (!world_.client->get(request_key(world_, world_.rank(), edge.peer), kLookWait)) return false;
  edge.dial = true;
  edge.began = edge.next_try = Clock::now();
  return true;
}

Status Links::look_into_rendezvous(const std::string& during) {
  const auto waits = [this](const Edge& edge) { return !edge.dial && edge.peer > world_.rank(); };
  if (joining_) {
    for (auto& edge : edges_) {
      if (waits(edge)) asked_to_dial(edge);
    }
  } else {
    // Whoever fails closes its connections; of this we would not hear while we have none with it.
    if (auto reason = published_failure(world_, during, kLookWait)) return tl::unexpected<Failure>(std::move(*reason));
    // Many may be late, but few can't reach us or have left: one edge per look, each in its turn.
    Edge& edge = edges_.front();
    if (waits(edge)) asked_to_dial(edge);
    // A handshake that is under way comes to its end by itself: a rank may have left after it, and after what it sent.
    const bool half_way = edge.attempt && !edge.attempt->connecting();
    if (!half_way && has_left(world_, edge.peer, kLookWait)) {
      Failure gone{DRUN_ERROR_PEER, world_.name_of(edge.peer) + " left before " + during, edge.peer,
                   world_.host_of(edge.peer)};
      publish_failure(world_, gone);
      return tl::unexpected<Failure>(std::move(gone));
    }
    edges_.splice(edges_.end(), edges_, edges_.begin());
  }
  next_look_ = Clock::now() + kLook;
  return {};
}

void Links::accept_all() {
  for (int n = 0; n < kMostAtOnce; ++n) {
    Fd fd(::accept4(listener_.fd.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!fd) {
      if (errno == ECONNABORTED || errno == EINTR) continue;
      // Out of file descriptors, say: what waits in the listener is not asked for again at once.
      cannot_accept_ = errno != EAGAIN;
      if (cannot_accept_) {
        const std::string why = errno_error(errno, "accept").message();
        for (auto& edge : edges_) {
          if (!edge.dial) edge.last_error = why;
        }
      }
      return;
    }
    // The oldest goes: a rank is through with its handshake in no time, a stranger only takes up room.
    if (incoming_.size() >= kMaxStrangers) incoming_.pop_front();
    incoming_.push_back({PeerHandshake::accept(std::move(fd), world_.key, identity(-1)), Clock::now() + kStrangerTime});
  }
}

void Links::step_incoming() {
  for (auto it = incoming_.begin(); it != incoming_.end();) {
    auto done = it->handshake.step();
    if (done && *done) connected(it->handshake);
    const bool over = !done || *done || Clock::now() >= it->give_up;
    it = over ? incoming_.erase(it) : std::next(it);
  }
}

void Links::step_dial(Edge& edge) {
  if (!edge.attempt) return;
  auto done = edge.attempt->step();
  if (!done) return dial_failed(edge, done.error());
  if (*done) connected(*edge.attempt);
}

// Also a rank that we have not asked for: it is ahead of us.
void Links::connected(PeerHandshake& handshake) {
  const int peer = handshake.peer();
  if (peer < 0 || peer >= world_.size() || peer == world_.rank() || connected_.count(peer) != 0) return;
  Fd fd = handshake.take();
  tune(fd.get(), user_timeout_);
  connected_.emplace(peer, std::move(fd));
}

Failure Links::missing() const {
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

std::vector<int> neighbours(int rank, int size) {
  std::set<int> result;
  for (int distance = 1; distance < size; distance <<= 1) {
    result.insert((rank + distance) % size);
    result.insert((rank - distance + size) % size);
  }
  result.erase(rank);
  return {result.begin(), result.end()};
}

}  // namespace drun::runtime
