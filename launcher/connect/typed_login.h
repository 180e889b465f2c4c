#pragma once

#include <string>

namespace drun::launcher {

// For hints: words by which a user reaches a host as drun does.
struct TypedLogin {
  std::string words;    // before a command: `ssh -p 12345 me@host1`; empty for the agent of this host
  std::string address;  // to which ssh connects: HostName of the ssh config
};

}  // namespace drun::launcher
