// The steps of a host on its way to running workers, in order; what deadlines, the progress line and the times of -v
// name.
#pragma once

#include <functional>

namespace drun::transport {

enum class Phase {
  kResolve,
  kConnect,
  kHandshake,  // ssh's banner, key exchange and host key
  kLogin,
  kSsh,       // OpenSSH's client at work: resolve to login, which can't be told apart from outside
  kAgent,     // from the login to the hello
  kDelivery,  // the agent itself travels
  kProbe,
  kPrepare,
  kStart,
};

constexpr const char* phase_name(Phase phase) {
  switch (phase) {
    case Phase::kResolve:
      return "resolve";
    case Phase::kConnect:
      return "connect";
    case Phase::kHandshake:
      return "handshake";
    case Phase::kLogin:
      return "login";
    case Phase::kSsh:
      return "ssh";
    case Phase::kAgent:
      return "agent";
    case Phase::kDelivery:
      return "delivery";
    case Phase::kProbe:
      return "probe";
    case Phase::kPrepare:
      return "prepare";
    case Phase::kStart:
      return "start";
  }
  return "";
}

using OnPhase = std::function<void(Phase)>;

inline void tell(const OnPhase* on_phase, Phase phase) {
  if (on_phase != nullptr && *on_phase) (*on_phase)(phase);
}

}  // namespace drun::transport
