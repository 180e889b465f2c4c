#include "runtime/src/failure.h"

namespace drun::runtime {
namespace {

int status_of(Errc code) {
  switch (code) {
    case Errc::kTimeout:
      return DRUN_ERROR_TIMEOUT;
    case Errc::kPeerFailed:
      return DRUN_ERROR_PEER;
    case Errc::kUsage:
      return DRUN_ERROR_ARGUMENT;
    case Errc::kUnreachable:
    case Errc::kAuth:
    case Errc::kClosed:
    case Errc::kProtocol:
      return DRUN_ERROR_CONNECT;
    case Errc::kIo:
      return DRUN_ERROR_SYSTEM;
    case Errc::kInterrupted:
    case Errc::kCanceled:
      return DRUN_ERROR_ABORTED;
    default:
      return DRUN_ERROR_INTERNAL;
  }
}

}  // namespace

Failure from_error(const Error& error, const std::string& what) {
  Failure result;
  result.status = status_of(error.code);
  result.text = what.empty() ? error.message() : what + ": " + error.message();
  if (!error.context.empty()) result.text += "; " + error.context;
  if (!error.hint.empty()) result.text += " (hint: " + error.hint + ")";
  return result;
}

}  // namespace drun::runtime
