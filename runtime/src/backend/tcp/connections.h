// A rank's connections: with its neighbors from the start, with other ranks from when a call first needs them.
#pragma once

#include <poll.h>
#include <sys/types.h>
#include <unistd.h>

#include <chrono>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/stall_watch.h"
#include "runtime/src/backend/tcp/peer_handshake.h"
#include "runtime/src/backend/tcp/socket.h"
#include "runtime/src/failure.h"
#include "runtime/src/job_context.h"

namespace drun::runtime {

// The ranks at distance 2^k on the circle, sorted, about 2 log2(size) of them. They are all edges of the binomial trees
// from any root, of the dissemination barrier and of the ring.
std::vector<int> neighbors(int rank, int size);

// The higher rank of a pair dials. If that fails for the time `dial_timeout`, it asks the other one, through the
// rendezvous, to dial instead. A rank listens as long as this object exists, and accepts connections that prove the
// job's key and the identity of a rank; it closes others. One thread: connect() and advance() process what has arrived.
class Connections {
 public:
  // Connects to every neighbor, with job_context.n_streams connections each. An error names every neighbor that is
  // missing, and the reason. `job_context` must outlive the links.
  static Outcome<std::unique_ptr<Connections>> connect(
      const JobContext& job_context, std::chrono::milliseconds dial_timeout = std::chrono::seconds(3));

  // The first connection with the peer, tuned and non-blocking; -1 until all of its connections exist.
  int fd(int peer) const { return fd(peer, 0); }
  int fd(int peer, std::size_t stream) const;
  // Number of peers with a connection.
  std::size_t size() const { return connected_.size(); }
  // Number of connections between any two ranks.
  std::size_t n_streams() const { return static_cast<std::size_t>(job_context_.n_streams); }
  // Requests connections with `peer`. Does not block.
  void want(int peer);
  // True while a connection is being made: advance() must then be called at least every kRetry.
  bool busy() const { return !edges_.empty() || !incoming_.empty() || cannot_accept_; }
  static constexpr std::chrono::milliseconds kRetry{100};
  // Adds the descriptors for which advance() waits.
  void add_to(std::vector<pollfd>& fds) const;
  // Makes progress without blocking. When a requested connection is a second late, polls the rendezvous now and then,
  // which takes up to 300 ms, and a request for each rank that has asked to be dialed. Fails when the job is over or
  // another rank has published a failure. `during` is for texts.
  Status advance(const std::string& during);
  // The reason why there is no connection with `peer`: "no connection with 10.0.0.7:4711: Connection refused".
  std::string why_not(int peer) const;
  // Closes all connections, also those that are being made, and stops listening.
  void close();

 private:
  // A requested connection that does not exist yet.
  struct Edge {
    int peer = -1;
    int stream = 0;
    std::string address;  // empty: not looked up yet
    int port = 0;
    bool dial = false;       // we dial
    bool passed_on = false;  // we asked them to dial
    std::optional<PeerHandshake> attempt;
    Clock::time_point next_try, began;  // time of dialing
    std::string last_error;
  };
  struct Incoming {
    PeerHandshake handshake;
    Clock::time_point give_up;
  };

  Connections(const JobContext& job_context, std::chrono::milliseconds dial_timeout)
      : job_context_(job_context), dial_timeout_(dial_timeout) {}

  Status join();
  Status publish(StallWatch& stops);
  std::chrono::milliseconds left() const;
  Status rendezvous_failure(const Error& error, const std::string& during);
  Status init_failure(Error error);
  PeerIdentity identity(int peer, int stream) const;
  // Descriptor of one connection; -1: it does not exist.
  int made(int peer, int stream) const;
  Status look_up(Edge& edge, const std::string& during);
  Status dial(Edge& edge, const std::string& during);
  void dial_failed(Edge& edge, const Error& error);
  bool dial_if_asked(int peer);
  void move_to_back(int peer);  // its edges, which are the first ones
  Status poll_rendezvous(const std::string& during);
  void accept_all();
  void step_incoming();
  void step_dial(Edge& edge);
  void connected(PeerHandshake& handshake);
  Failure missing() const;

  const JobContext& job_context_;
  std::chrono::milliseconds dial_timeout_;
  const pid_t owner_ = ::getpid();
  bool joining_ = true;
  bool cannot_accept_ = false;  // the latest accept failed
  Clock::time_point deadline_, next_poll_;
  Listener listener_;
  std::list<Edge> edges_;
  std::list<Incoming> incoming_;
  std::map<int, std::vector<Fd>> connected_;  // by peer and stream; not open until made
};

}  // namespace drun::runtime
