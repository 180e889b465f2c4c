// A new connection between two ranks, until both have proved the job's key and identified themselves. Non-blocking.
//
//   dialer                          acceptor
//   hello                    ──►
//                            ◄──    hello and proof
//   proof, sealed identity   ──►
//                            ◄──    sealed identity
//
// After that the connection carries plaintext: the collectives move the user's data on the user's network.
#pragma once

#include <poll.h>

#include <memory>
#include <optional>
#include <string>

#include "base/error.h"
#include "base/fd.h"
#include "rendezvous/handshake.h"

namespace drun::runtime {

struct PeerIdentity {
  std::string job_id;
  int epoch = 1;
  int from = -1;
  int to = -1;
  int stream = 0;  // number of the connection between the two
};

class PeerHandshake {
 public:
  // `fd` is connecting, and non-blocking. `own.to` is the rank that must answer.
  static PeerHandshake dial(Fd fd, const rendezvous::JobKey& key, PeerIdentity own);
  // `own.to` and `own.stream` are set to what the dialer proves.
  static PeerHandshake accept(Fd fd, const rendezvous::JobKey& key, PeerIdentity own);

  // Makes progress without blocking. True: done, and peer() is proved. On an error the caller closes the connection.
  Result<bool> step();
  bool connecting() const { return phase_ == Phase::kConnecting; }
  int fd() const { return fd_.get(); }
  short poll_events() const { return wants_write() ? POLLOUT : POLLIN; }
  int peer() const { return own_.to; }
  int stream() const { return own_.stream; }
  Fd take() { return std::move(fd_); }

 private:
  enum class Phase { kConnecting, kHello, kProof, kIdentityLength, kIdentity, kDone };

  PeerHandshake(Fd fd, PeerIdentity own) : fd_(std::move(fd)), own_(std::move(own)) {}
  bool wants_write() const { return phase_ == Phase::kConnecting || !output_.empty(); }
  void expect(Phase phase, std::size_t n_bytes);
  Result<bool> flush();
  Result<bool> fill();
  Result<void> take_in();  // processes input_, for which phase_ was waiting
  Result<void> take_in_hello();
  Result<void> take_in_identity();
  void send_identity();

  Fd fd_;
  PeerIdentity own_;
  std::optional<rendezvous::ClientHandshake> client_;
  std::optional<rendezvous::ServerHandshake> server_;
  rendezvous::SecureStreams streams_;
  Phase phase_ = Phase::kHello;
  std::string output_, input_;
  std::size_t expected_ = 0;
};

}  // namespace drun::runtime
