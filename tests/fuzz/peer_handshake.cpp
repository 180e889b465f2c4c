// A connection between two ranks, with cuts and changes on the way; the headers and stripes of what follows.
#include "runtime/src/backend/tcp/peer_handshake.h"

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>

#include "runtime/src/backend/tcp/stripes.h"
#include "runtime/src/operation.h"
#include "tests/fuzz/fuzz.h"

namespace drun::fuzz {
namespace {

using namespace runtime;

const rendezvous::JobKey kKey{1, 2, 3};

struct Pair {
  Pair() {
    std::array<int, 2> fds{};
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds.data()) != 0) std::abort();
    near = Fd(fds[0]);
    far = Fd(fds[1]);
  }
  Fd near, far;
};

PeerIdentity identity(int from, int to) {
  PeerIdentity out;
  out.job_id = "job";
  out.from = from;
  out.to = to;
  return out;
}

// Passes on what has arrived, in pieces, one of which may be changed. False: it was the changed one.
bool pass_on(Input& in, const Fd& from, const Fd& to) {
  std::array<char, 4096> buffer;
  const ssize_t n = ::recv(from.get(), buffer.data(), 1 + in.byte() % 128u, 0);
  if (n <= 0) return true;
  const std::uint8_t change = in.byte();
  if (change >= 250) buffer[static_cast<std::size_t>(in.byte() % n)] ^= static_cast<char>(1 + in.byte() % 255);
  if (::send(to.get(), buffer.data(), static_cast<std::size_t>(n), MSG_NOSIGNAL) != n) std::abort();
  return change < 250;
}

// Two honest ranks, and somebody between them.
void meet(Input& in) {
  Pair dialer_side, acceptor_side;
  auto dialer = PeerHandshake::dial(std::move(dialer_side.near), kKey, identity(1, 0));
  auto acceptor = PeerHandshake::accept(std::move(acceptor_side.near), kKey, identity(0, -1));
  bool dialed = false, accepted = false, intact = true;
  for (int i = 0; i < 1000 && !(dialed && accepted); ++i) {
    if (!dialed) {
      const auto done = dialer.step();
      expect(done || !intact, "an undisturbed dialer makes no error");
      if (!done) return;
      dialed = *done;
    }
    if (!accepted) {
      const auto done = acceptor.step();
      expect(done || !intact, "an undisturbed acceptor makes no error");
      if (!done) return;
      accepted = *done;
    }
    intact = pass_on(in, dialer_side.far, acceptor_side.far) && intact;
    intact = pass_on(in, acceptor_side.far, dialer_side.far) && intact;
  }
  expect(!dialed || intact, "a dialer believes only what the acceptor sent");
  expect(intact == (dialed && accepted), "an undisturbed handshake ends, a disturbed one does not");
  if (dialed) expect(dialer.peer() == 0 && acceptor.peer() == 1, "both know each other");
}

// A stranger who sends anything, then closes.
void be_visited(Input& in, bool as_dialer) {
  Pair pair;
  auto handshake = as_dialer ? PeerHandshake::dial(std::move(pair.near), kKey, identity(1, 0))
                             : PeerHandshake::accept(std::move(pair.near), kKey, identity(0, -1));
  while (!in.empty()) {
    const auto piece = in.bytes(1 + in.byte());
    if (::send(pair.far.get(), piece.data(), piece.size(), MSG_NOSIGNAL) < 0) break;
    const auto done = handshake.step();
    expect(!done || !*done, "a stranger is no peer");
    if (!done) return;
  }
  pair.far.reset();
  for (int i = 0; i < 10; ++i) {
    if (!handshake.step()) return;
  }
  expect(false, "a closed connection ends the handshake");
}

void read_header(std::string_view bytes) {
  const auto operation = decode_header(bytes);
  if (!operation) return;
  expect(bytes.size() == kHeaderBytes, "a header has one size");
  Operation named = *operation;
  named.name = name_in_header(bytes);
  expect(named.name.size() <= kNameBytes + 1, "a name is short");
  (void)describe(named);
  const std::string once = encode_header(named);
  const auto again = decode_header(once);
  expect(once.size() == kHeaderBytes && again && same_call(*again, *operation), "a header is decoded as it was");
  (void)scan_name(named.name);
}

// Connections that move bytes in any order: all bytes of the message move once, in windows of any size.
void stripe(Input& in) {
  const std::size_t n_connections = 1 + in.below(4);
  const std::size_t n_bytes = in.number() % (5 * Stripes::kBytes);
  Stripes stripes(n_connections);
  static std::array<char, 5 * Stripes::kBytes> memory;
  std::array<std::size_t, 4> moved{};
  std::size_t done = 0;
  for (int i = 0; i < 1000 && done < n_bytes; ++i) {
    const std::size_t n_ready =
        in.empty() ? n_bytes - done : std::min<std::size_t>(in.number() % 200'000, n_bytes - done);
    const Window window{memory.data() + done, n_ready};
    for (std::size_t connection = 0; connection < n_connections; ++connection) {
      const Window part = stripes.window_of(connection, window, done);
      if (part.n_bytes == 0) continue;
      expect(part.data >= window.data && part.data + part.n_bytes <= window.data + window.n_bytes,
             "parts lie in the window");
      const auto at = static_cast<std::size_t>(part.data - memory.data());
      expect(at / Stripes::kBytes % n_connections == connection, "a stripe has its connection");
      const std::size_t n = in.empty() ? part.n_bytes : std::min<std::size_t>(in.number() % 70'000, part.n_bytes);
      stripes.moved(connection, n);
      moved[connection] += n;
    }
    done += stripes.n_moved(window, done);
    expect(done <= n_bytes, "no more than the message moves");
  }
  if (!in.empty()) return;
  std::size_t sum = 0;
  for (const std::size_t n : moved) sum += n;
  expect(sum >= done, "what is done has moved");
}

void run(std::string_view bytes) {
  Input in(bytes);
  switch (in.below(5)) {
    case 0:
      return meet(in);
    case 1:
      return be_visited(in, true);
    case 2:
      return be_visited(in, false);
    case 3:
      return read_header(in.rest());
    default:
      return stripe(in);
  }
}

std::vector<std::string> seeds() {
  Operation operation;
  operation.kind = OpKind::kAllreduce;
  operation.dtype = DRUN_FLOAT32;
  operation.seq = 12;
  operation.count = 10;
  operation.name = "grad.17";
  operation.names = scan_name(operation.name).digest;
  Script whole, bitwise, changed, stripes;
  whole.byte(0).raw(std::string(40, '\x7f'));
  bitwise.byte(0);
  changed.byte(0).raw(std::string("\x7f\0\x7f\0\x7f\xff\x05\x08", 8));
  stripes.byte(4).byte(3).number(300'000).number(100'000).number(60'000).number(70'000).number(1);
  const std::string hello = rendezvous::ClientHandshake(kKey, rendezvous::Purpose::kPeer).hello();
  return {
      whole,
      bitwise,
      changed,
      stripes,
      Script().byte(1).byte(63).raw(std::string(64, 's')),
      Script().byte(2).byte(39).raw(hello).byte(31).raw(std::string(32, 'p')),
      Script().byte(3).raw(encode_header(operation)),
  };
}

const Target kTarget("peer_handshake", run, seeds);

}  // namespace
}  // namespace drun::fuzz
