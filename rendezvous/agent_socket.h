// What a worker's agent hands it over the Unix socket $DRUN_AGENT. C++17: used by the agent and by libdrun.
//
// The worker connects and sends 8 bytes: "DRUNw" version:u8 zero:u16... see docs/protocol.md; the agent checks by
// SO_PEERCRED that it is the same user, and answers one Handout, length-prefixed (u32). With the prefix may come a
// descriptor (SCM_RIGHTS), the memory that the workers of the host share, and another with the Handout: this worker's
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
  std::string rendezvous_address;  // where this host's workers reach the server, or the relay
  int rendezvous_port = 0;
  std::string data_address;  // this host's chosen address, for libdrun's own connections; IP text
};

inline constexpr std::string_view kWorkerHello{"DRUNw\x01\0\0", 8};

// Into the empty buffer of a new connection: does not wait. How many bytes went; 0: nor did the descriptor.
std::size_t send_with_descriptor(int socket, std::string_view bytes, int descriptor);

std::string encode_handout(const Handout& handout);  // without the length prefix
Result<Handout> decode_handout(std::string_view bytes);
// Blocking, for the worker. The path may be longer than a socket address holds.
struct Fetched {
  Handout handout;
  Fd memory;    // a memfd that all workers of the host get, of no size at first; closed: the agent gives none
  Fd recorder;  // of recorder/layout.h, for this worker alone; closed: the agent gives none
};
Result<Fetched> fetch_handout(const std::string& socket_path, std::chrono::milliseconds timeout);

// Who is at the other end of a connected Unix socket, as the kernel says (SO_PEERCRED).
struct SocketPeer {
  pid_t pid = 0;
  uid_t uid = 0;
  gid_t gid = 0;
};
Result<SocketPeer> peer_of(int fd);

}  // namespace drun::rendezvous
