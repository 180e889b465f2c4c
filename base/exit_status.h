// All exit statuses of drun. The page for users: docs/exit-status.md.
#pragma once

#include <signal.h>

#include <cerrno>
#include <cstring>

#include "base/error.h"

namespace drun {

enum ExitStatus : int {
  kExitOk = 0,
  kExitLeft = 1,          // drun clean: something is left
  kExitNotReady = 1,      // drun check: something would stop a job, or with --strict a warning
  kExitUsage = 2,         // options, host list, hostfile, config
  kExitUnreachable = 68,  // a host can't be reached or logged in to, or was lost; no common network
  kExitInternal = 70,
  kExitTimeout = 75,         // a deadline of drun's own passed
  kExitNotExecutable = 126,  // the command can't be executed on a host
  kExitNotFound = 127,       // the command does not exist on a host
  kExitSignal = 128,         // plus the number of the signal that ended the worker or drun (130: Ctrl-C)
};

inline int exit_status(Errc code) {
  switch (code) {
    case Errc::kNone:
      return kExitOk;
    case Errc::kUsage:
      return kExitUsage;
    case Errc::kUnreachable:
    case Errc::kIo:
    case Errc::kClosed:
    case Errc::kAuth:
      return kExitUnreachable;
    case Errc::kTimeout:
      return kExitTimeout;
    case Errc::kNotExecutable:
      return kExitNotExecutable;
    case Errc::kNotFound:
      return kExitNotFound;
    case Errc::kInterrupted:
      return kExitSignal + 2;
    default:
      return kExitInternal;
  }
}

// For a failed write to stdout or stderr. If its reader is gone, as with `| head -1`, the status is that of SIGPIPE.
inline bool reader_left(const Error& error) {
  return error.cause.find(std::strerror(EPIPE)) != std::string::npos ||
         error.cause.find("broken pipe") != std::string::npos;
}
inline int output_status(const Error& error) {
  return reader_left(error) ? kExitSignal + SIGPIPE : static_cast<int>(kExitUnreachable);
}

}  // namespace drun
