#include "runtime/src/backend/tcp/connections.h"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <set>

#include "base/tcp_socket.h"
#include "base/text.h"

namespace drun::runtime {
namespace {

using std::chrono::milliseconds;
constexpr milliseconds kPollInterval{1000};  // polls the rendezvous for requests to dial and for failures
constexpr milliseconds kPollWait{100};
constexpr milliseconds kLookupWait{10'000};
constexpr milliseconds kStrangerTime{5000};  // in which a connection must prove the key
constexpr std::size_t kMaxStrangers = 256;
constexpr milliseconds kLongestWait{1000};  // in the rendezvous, between readings of the clock
constexpr int kMaxAtOnce = 64;              // accepts in a row
// Breaks a connection whose other side acknowledges nothing, or reads nothing. Not sooner: calls have deadlines of
// their own, drun notices a dead host, and a peer that is stopped, or between two calls, may leave data unread for
// long.
constexpr std::chrono::hours kSilence{24};
constexpr int kBacklog = 4096;  // all ranks may connect while this one is not in a call

std::string endpoint_key(int rank) { return own_key("data/" + std::to_string(rank)); }
std::string request_key(int dialer, int waiter) {
  return own_key("dial/" + std::to_string(dialer) + "/" + std::to_string(waiter));
}

}  // namespace

Outcome<std::unique_ptr<Connections>> Connections::connect(const JobContext& job_context, milliseconds dial_timeout) {
  std::unique_ptr<Connections> result(new Connections(job_context, dial_timeout));
  if (auto joined = result->join(); !joined) return tl::unexpected<Failure>(joined.error());
  return result;
}

Status Connections::join() {
  deadline_ = Clock::now() + job_context_.timeouts.init;
  StallWatch stops(kLongestWait);
  if (auto published = publish(stops); !published) return published;
  for (const int peer : neighbors(job_context_.rank(), job_context_.size())) want(peer);
  for (auto& edge : edges_) {
    if (!edge.address.empty()) continue;
    if (auto known = look_up(edge, "drun_init"); !known) return known;
  }
  const auto began = Clock::now();
  deadline_ += stops.poll();
  next_poll_ = began + dial_timeout_;
  for (auto& edge : edges_) edge.next_try = edge.began = began;
  while (!edges_.empty()) {
    const auto stopped = stops.poll();
    deadline_ += stopped;
    for (auto& edge : edges_) edge.began += stopped;
    if (auto alive = check_alive(job_context_, "drun_init"); !alive) return alive;
    if (Clock::now() >= deadline_) return tl::unexpected<Failure>(missing());
    if (auto advanced = advance("drun_init"); !advanced) return advanced;
    if (edges_.empty()) break;
    std::vector<pollfd> fds{{job_context_.client->fd(), POLLIN, 0}};
    if (job_context_.interrupt_fd >= 0) fds.push_back({job_context_.interrupt_fd, POLLIN, 0});
    add_to(fds);
    (void)::poll(fds.data(), fds.size(), static_cast<int>(std::min(left(), kRetry).count()));
  }
  joining_ = false;
  return {};
}

milliseconds Connections::left() const {
  return std::max(milliseconds(1), std::chrono::duration_cast<milliseconds>(deadline_ - Clock::now()));
}

Status Connections::publish(StallWatch& stops) {
  auto listener = listen_on(job_context_.data_address, kBacklog);
  if (!listener) return tl::unexpected<Failure>(from_error(listener.error(), "drun_init"));
  listener_ = std::move(*listener);
  auto& client = *job_context_.client;
  const std::string own =
      listener_.address + " " + std::to_string(listener_.port) + " " + std::to_string(job_context_.n_streams);
  if (auto set = client.set(endpoint_key(job_context_.rank()), own); !set) {
    return rendezvous_failure(set.error(), "drun_init");
  }
  deadline_ += stops.poll();
  // The timeout's text names the ranks that did not join.
  if (auto all = client.barrier(own_key("init"), left()); !all) return init_failure(all.error());
  return {};
}

Status Connections::rendezvous_failure(const Error& error, const std::string& during) {
  if (auto alive = check_alive(job_context_, during); !alive) return alive;
  return tl::unexpected<Failure>(from_error(error, during));
}

// As rendezvous_failure, for the barrier of all ranks; removes its internal name from the text.
Status Connections::init_failure(Error error) {
  const auto missing_ranks = error.cause.find("; missing: ");
  if (error.code == Errc::kTimeout && missing_ranks != std::string::npos) {
    error.cause = "not every rank called drun_init within " +
                  std::to_string(job_context_.timeouts.init.count() / 1000) + " s" + error.cause.substr(missing_ranks);
  }
  return rendezvous_failure(error, "drun_init");
}

int Connections::made(int peer, int stream) const {
  const auto link = connected_.find(peer);
  return link != connected_.end() ? link->second[static_cast<std::size_t>(stream)].get() : -1;
}

int Connections::fd(int peer, std::size_t stream) const {
  const auto link = connected_.find(peer);
  if (link == connected_.end()) return -1;
  const auto is_made = [](const Fd& fd) { return static_cast<bool>(fd); };
  return std::all_of(link->second.begin(), link->second.end(), is_made) ? link->second[stream].get() : -1;
}

void Connections::want(int peer) {
  for (int stream = 0; stream < job_context_.n_streams; ++stream) {
    const auto is_it = [&](const Edge& edge) { return edge.peer == peer && edge.stream == stream; };
    if (made(peer, stream) >= 0 || std::any_of(edges_.begin(), edges_.end(), is_it)) continue;
    if (edges_.empty()) next_poll_ = Clock::now() + kPollInterval;
    Edge edge;
    edge.peer = peer;
    edge.stream = stream;
    edge.dial = job_context_.rank() > peer;
    edge.next_try = edge.began = Clock::now();
    edges_.push_back(std::move(edge));
  }
}

void Connections::add_to(std::vector<pollfd>& fds) const {
  fds.push_back({cannot_accept_ ? -1 : listener_.fd.get(), POLLIN, 0});
  for (const auto& incoming : incoming_) fds.push_back({incoming.handshake.fd(), incoming.handshake.poll_events(), 0});
  for (const auto& edge : edges_) {
    if (edge.attempt) fds.push_back({edge.attempt->fd(), edge.attempt->poll_events(), 0});
  }
}

// First takes in what has arrived: after a pause of this process, only then is it known which edges are late.
Status Connections::advance(const std::string& during) {
  accept_all();
  step_incoming();
  for (auto& edge : edges_) step_dial(edge);
  edges_.remove_if([this](const Edge& edge) { return made(edge.peer, edge.stream) >= 0; });
  for (auto& edge : edges_) {
    if (auto dialed = dial(edge, during); !dialed) return dialed;
  }
  if (!edges_.empty() && Clock::now() >= next_poll_) return poll_rendezvous(during);
  return {};
}

std::string Connections::why_not(int peer) const {
  for (const auto& edge : edges_) {
    if (edge.peer != peer) continue;
    std::string text = "no connection";
    if (!edge.address.empty()) text += " with " + host_port(edge.address, edge.port);
    return edge.last_error.empty() ? text : text + ": " + edge.last_error;
  }
  return {};
}

void Connections::close() {
  for (const auto& [peer, streams] : connected_) {
    for (const Fd& fd : streams) {
      // Children without exec, as a DataLoader's, have copies: without this the peer would not see the end.
      if (fd && ::getpid() == owner_) ::shutdown(fd.get(), SHUT_RDWR);
    }
  }
  connected_.clear();
  edges_.clear();
  incoming_.clear();
  listener_.fd.reset();
}

PeerIdentity Connections::identity(int peer, int stream) const {
  return {job_context_.client->welcome().job_id, job_context_.client->welcome().epoch, job_context_.rank(), peer,
          stream};
}

// No wait: all ranks have published their endpoints.
Status Connections::look_up(Edge& edge, const std::string& during) {
  auto endpoint = job_context_.client->get(endpoint_key(edge.peer), kLookupWait);
  if (!endpoint) return rendezvous_failure(endpoint.error(), during);
  const auto parts = split(*endpoint, ' ');
  const auto port = parts.size() == 3 ? parse_number(parts[1]) : std::nullopt;
  if (!port) return failure(DRUN_ERROR_INTERNAL, during + ": bad endpoint of " + job_context_.name_of(edge.peer));
  if (parts[2] != std::to_string(job_context_.n_streams)) {
    Failure differs{DRUN_ERROR_MISMATCH,
                    during + ": DRUN_STREAMS is " + std::string(parts[2]) + " on " + job_context_.name_of(edge.peer) +
                        " and " + std::to_string(job_context_.n_streams) + " on " +
                        job_context_.name_of(job_context_.rank()) + "; all ranks must have the same",
                    edge.peer, job_context_.host_of(edge.peer)};
    publish_failure(job_context_, differs);
    return tl::unexpected<Failure>(std::move(differs));
  }
  for (Edge& one : edges_) {
    if (one.peer != edge.peer) continue;
    one.address = parts[0];
    one.port = static_cast<int>(*port);
  }
  return {};
}

Status Connections::dial(Edge& edge, const std::string& during) {
  const auto now = Clock::now();
  if (!edge.dial) return {};
  // A handshake in progress may already be complete on the other side, so it gets more time. After drun_init it is
  // never given up, because the other side may just be late for the call.
  // All requested connections with the peer are passed on together, so that none is dialed by both sides.
  const bool half_way = std::any_of(edges_.begin(), edges_.end(), [&](const Edge& one) {
    return one.peer == edge.peer && one.attempt && !one.attempt->connecting();
  });
  const bool may_pass_on = !edge.passed_on && job_context_.rank() > edge.peer && (joining_ || !half_way);
  if (may_pass_on && now >= edge.began + (half_way ? 3 : 1) * dial_timeout_) {
    for (Edge& one : edges_) {
      if (one.peer != edge.peer) continue;
      one.attempt.reset();
      one.dial = false;
      one.passed_on = true;
      if (one.last_error.empty()) one.last_error = "no answer";
    }
    (void)job_context_.client->set(request_key(edge.peer, job_context_.rank()), "please");
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
    edge.attempt = PeerHandshake::dial(std::move(*fd), job_context_.key, identity(edge.peer, edge.stream));
  }
  return {};
}

void Connections::dial_failed(Edge& edge, const Error& error) {
  edge.attempt.reset();
  edge.last_error = error.message();
  edge.next_try = Clock::now() + kRetry;
}

// Starts to dial if the higher rank `peer` has asked for it; true if it has.
bool Connections::dial_if_asked(int peer) {
  if (!job_context_.client->get(request_key(job_context_.rank(), peer), kPollWait)) return false;
  for (auto& edge : edges_) {
    if (edge.peer != peer || edge.dial) continue;
    edge.dial = true;
    edge.began = edge.next_try = Clock::now();
  }
  return true;
}

void Connections::move_to_back(int peer) {
  auto last = edges_.begin();
  while (last != edges_.end() && last->peer == peer) ++last;
  edges_.splice(edges_.end(), edges_, edges_.begin(), last);
}

Status Connections::poll_rendezvous(const std::string& during) {
  const auto waits = [this](const Edge& edge) { return !edge.dial && edge.peer > job_context_.rank(); };
  if (joining_) {
    std::set<int> peers;
    for (const auto& edge : edges_) {
      if (waits(edge)) peers.insert(edge.peer);
    }
    for (const int peer : peers) dial_if_asked(peer);
  } else {
    // A rank that fails closes its connections, but we do not notice while we have none with it.
    if (auto reason = published_failure(job_context_, during, kPollWait))
      return tl::unexpected<Failure>(std::move(*reason));
    // All ranks may have asked while this one was late for the call: their connections had no place in the backlog.
    while (waits(edges_.front()) && dial_if_asked(edges_.front().peer)) move_to_back(edges_.front().peer);
    // Many ranks may be late, but few have left: check one edge per poll, in turns.
    Edge& edge = edges_.front();
    // A handshake in progress ends by itself: the rank may have left after it, and after it sent its data.
    const bool half_way = edge.attempt && !edge.attempt->connecting();
    if (!half_way && has_left(job_context_, edge.peer, kPollWait)) {
      Failure gone{DRUN_ERROR_PEER, job_context_.name_of(edge.peer) + " left before " + during, edge.peer,
                   job_context_.host_of(edge.peer)};
      publish_failure(job_context_, gone);
      return tl::unexpected<Failure>(std::move(gone));
    }
    move_to_back(edge.peer);
  }
  next_poll_ = Clock::now() + kPollInterval;
  return {};
}

void Connections::accept_all() {
  for (int n = 0; n < kMaxAtOnce; ++n) {
    Fd fd(::accept4(listener_.fd.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!fd) {
      if (errno == ECONNABORTED || errno == EINTR) continue;
      // For example out of file descriptors: do not poll the listener again at once.
      cannot_accept_ = errno != EAGAIN;
      if (cannot_accept_) {
        const std::string why = errno_error(errno, "accept").message();
        for (auto& edge : edges_) {
          if (!edge.dial) edge.last_error = why;
        }
      }
      return;
    }
    // Drop the oldest: a rank completes its handshake quickly, a stranger only occupies the place.
    if (incoming_.size() >= kMaxStrangers * n_streams()) incoming_.pop_front();
    incoming_.push_back(
        {PeerHandshake::accept(std::move(fd), job_context_.key, identity(-1, 0)), Clock::now() + kStrangerTime});
  }
}

void Connections::step_incoming() {
  for (auto it = incoming_.begin(); it != incoming_.end();) {
    auto done = it->handshake.step();
    if (done && *done) connected(it->handshake);
    const bool over = !done || *done || Clock::now() >= it->give_up;
    it = over ? incoming_.erase(it) : std::next(it);
  }
}

void Connections::step_dial(Edge& edge) {
  if (!edge.attempt) return;
  auto done = edge.attempt->step();
  if (!done) return dial_failed(edge, done.error());
  if (*done) connected(*edge.attempt);
}

// Also called for a rank that was not requested: it is ahead of us.
void Connections::connected(PeerHandshake& handshake) {
  const int peer = handshake.peer();
  const int stream = handshake.stream();
  if (peer < 0 || peer >= job_context_.size() || peer == job_context_.rank()) return;
  if (stream < 0 || stream >= job_context_.n_streams || made(peer, stream) >= 0) return;
  auto& streams = connected_[peer];
  streams.resize(n_streams());
  Fd& fd = streams[static_cast<std::size_t>(stream)];
  fd = handshake.take();
  tune_tcp(fd.get(), std::max<milliseconds>(kSilence, job_context_.timeouts.op));
}

Failure Connections::missing() const {
  Failure result;
  result.status = DRUN_ERROR_TIMEOUT;
  result.rank = edges_.front().peer;
  result.host = job_context_.host_of(result.rank);
  result.text = "drun_init timed out after " + std::to_string(job_context_.timeouts.init.count() / 1000) +
                " s: no connection with ";
  bool first = true;
  std::set<int> named;
  for (const auto& edge : edges_) {
    if (!named.insert(edge.peer).second) continue;
    result.text += (first ? "" : ", ") + job_context_.name_of(edge.peer) + " at " + host_port(edge.address, edge.port);
    if (!edge.last_error.empty()) result.text += " (" + edge.last_error + ")";
    first = false;
  }
  return result;
}

std::vector<int> neighbors(int rank, int size) {
  std::set<int> result;
  for (int distance = 1; distance < size; distance <<= 1) {
    result.insert((rank + distance) % size);
    result.insert((rank - distance + size) % size);
  }
  result.erase(rank);
  return {result.begin(), result.end()};
}

}  // namespace drun::runtime
