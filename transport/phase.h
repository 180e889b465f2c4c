// The steps of a host on its way to running workers, in order. Named in deadline errors, in the progress line and in
// the times of -v.
#pragma once

#include <functional>

namespace drun::transport {

enum class Phase {
  kResolve,
  kConnect,
  kHandshake,  // ssh's banner, key exchange and host key
  kLogin,
  kSsh,       // OpenSSH's client runs: resolve to login, not distinguishable from outside
  kAgent,     // from the login to the hello
  kDelivery,  // the agent executable is copied
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

inline void notify_phase(const OnPhase* on_phase, Phase phase) {
  if (on_phase != nullptr && *on_phase) (*on_phase)(phase);
}

}  // namespace drun::transport
