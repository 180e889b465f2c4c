// What a worker's agent hands it over the Unix socket $DRUN_AGENT. C++17: used by the agent and by libdrun.
//
// The worker connects and sends 8 bytes: "DRUNw" version:u8 zero:u16... see docs/protocol.md; the agent checks by
// SO_PEERCRED that it is the same user, and answers one Handout, length-prefixed (u32). Descriptors may ride along
// (SCM_RIGHTS): none yet; shared memory will.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <string>
#include <string_view>

#include "base/error.h"
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

std::string encode_handout(const Handout& handout);  // without the length prefix
Result<Handout> decode_handout(std::string_view bytes);
// Blocking, for the worker. The path may be longer than a socket address holds.
Result<Handout> fetch_handout(const std::string& socket_path, std::chrono::milliseconds timeout);

// Who is at the other end of a connected Unix socket, as the kernel says (SO_PEERCRED).
struct SocketPeer {
  pid_t pid = 0;
  uid_t uid = 0;
  gid_t gid = 0;
};
Result<SocketPeer> peer_of(int fd);

}  // namespace drun::rendezvous
