// A rank's connections: with its neighbours from the start, with others from when a call first needs them.
#pragma once

#include <poll.h>

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
#include "runtime/src/world.h"

namespace drun::runtime {

// The ranks at distance 2^k on the circle: all edges of the binomial trees from any root, of the dissemination barrier
// and of the ring. Sorted; about 2 log2(size) of them.
std::vector<int> neighbours(int rank, int size);

// Of a pair the higher rank dials; if that does not work within `patience` it asks the other side, through the
// rendezvous, to dial instead. A rank listens for as long as this lives, and takes in whoever proves the job's key and
// to be a rank of it; others are closed. One thread: what comes is dealt with in connect() and advance().
class Links {
 public:
  // Connects to every neighbour, by world.n_streams connections each. Errors name every neighbour that is missing, and
  // why. `world` outlives the links.
  static Outcome<std::unique_ptr<Links>> connect(const World& world,
                                                 std::chrono::milliseconds patience = std::chrono::seconds(3));

  // The first of the connections with the peer, tuned and non-blocking; -1: not all of them are made.
  int fd(int peer) const { return fd(peer, 0); }
  int fd(int peer, std::size_t stream) const;
  // Peers with which there is a connection.
  std::size_t size() const { return connected_.size(); }
  // As many connections are between any two ranks.
  std::size_t n_streams() const { return static_cast<std::size_t>(world_.n_streams); }
  // A call needs `peer`. Does not block.
  void want(int peer);
  // Whether a connection is being made, so that advance() has to be called, if nothing else every kRetry.
  bool busy() const { return !edges_.empty() || !incoming_.empty() || cannot_accept_; }
  static constexpr std::chrono::milliseconds kRetry{100};
  // For poll(): what advance() goes on with.
  void add_to(std::vector<pollfd>& fds) const;
  // Goes on as far as is possible now. Once a wanted link is a second late it looks into the rendezvous now and then,
  // for up to 300 ms. Fails when the job is over or another rank has published a failure. `during` is for texts.
  Status advance(const std::string& during);
  // Why there is no connection with `peer`: "no connection with 10.0.0.7:4711: Connection refused".
  std::string why_not(int peer) const;
  // A connection breaks when its other side takes nothing for this long, as long as a call may take.
  void be_patient_for(std::chrono::milliseconds timeout);
  // Of all, also of those that are being made. Nobody listens any more.
  void close();

 private:
  // A connection with a rank that is wanted and not made.
  struct Edge {
    int peer = -1;
    int stream = 0;
    std::string address;  // empty: not looked up
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

  Links(const World& world, std::chrono::milliseconds patience)
      : world_(world), patience_(patience), user_timeout_(world.timeouts.op) {}

  Status join();
  Status publish(StallWatch& stops);
  std::chrono::milliseconds left() const;
  Status rendezvous_failure(const Error& error, const std::string& during);
  Status init_failure(Error error);
  PeerIdentity identity(int peer, int stream) const;
  // Of one of the connections alone; -1: it is not made.
  int made(int peer, int stream) const;
  Status look_up(Edge& edge, const std::string& during);
  Status dial(Edge& edge, const std::string& during);
  void dial_failed(Edge& edge, const Error& error);
  void dial_if_asked(int peer);
  Status look_into_rendezvous(const std::string& during);
  void accept_all();
  void step_incoming();
  void step_dial(Edge& edge);
  void connected(PeerHandshake& handshake);
  Failure missing() const;

  const World& world_;
  std::chrono::milliseconds patience_, user_timeout_;
  bool joining_ = true;
  bool cannot_accept_ = false;  // when it was tried last
  Clock::time_point deadline_, next_look_;
  Listener listener_;
  std::list<Edge> edges_;
  std::list<Incoming> incoming_;
  std::map<int, std::vector<Fd>> connected_;  // by peer and stream; those that are not made are closed
};

}  // namespace drun::runtime
