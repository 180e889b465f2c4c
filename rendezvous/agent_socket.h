// The handout that an agent sends to a worker over the Unix socket $DRUN_AGENT. C++17: used by the agent and libdrun.
//
// The worker connects and sends 8 bytes: "DRUNw" version:u8 zero:u16 (docs/protocol.md). The agent checks by
// SO_PEERCRED that the worker has the same user and replies with one Handout, length-prefixed (u32). The prefix may
// carry a descriptor (SCM_RIGHTS) of the memory that the workers of the host share, the Handout one of this worker's
// flight recorder.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/fd.h"
#include "rendezvous/handshake.h"

namespace drun::rendezvous {

struct Handout {
  JobKey key{};
  std::string job_id;
  std::string rendezvous_address;  // the server, or the relay, as reachable by this host's workers
  int rendezvous_port = 0;
  std::string data_address;  // this host's chosen address (IP text), for connections between ranks
};

inline constexpr std::string_view kWorkerHello{"DRUNw\x01\0\0", 8};

// Sends into the empty buffer of a new connection, without waiting. Returns the number of bytes sent; if 0, the
// descriptor was not sent either.
std::size_t send_with_descriptor(int socket, std::string_view bytes, int descriptor);

std::string encode_handout(const Handout& handout);  // without the length prefix
Result<Handout> decode_handout(std::string_view bytes);
// Result of fetch_handout().
struct Fetched {
  Handout handout;
  Fd memory;    // memfd shared by all workers of the host, initially of size 0; closed: none
  Fd recorder;  // this worker's recorder (recorder/layout.h); closed: none
};
// Blocks, for the worker. `socket_path` may be longer than a socket address holds.
Result<Fetched> fetch_handout(const std::string& socket_path, std::chrono::milliseconds timeout);

// Credentials of the process at the other end of a connected Unix socket, from the kernel (SO_PEERCRED).
struct SocketPeer {
  pid_t pid = 0;
  uid_t uid = 0;
  gid_t gid = 0;
};
Result<SocketPeer> peer_of(int fd);

}  // namespace drun::rendezvous
