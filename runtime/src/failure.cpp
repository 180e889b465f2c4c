#include "runtime/src/failure.h"

#include <string_view>

#include "base/error_id.h"

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

std::string_view id_of(int status) {
  switch (status) {
    case DRUN_ERROR_ARGUMENT:
      return error_id::kArgument;
    case DRUN_ERROR_STATE:
      return error_id::kState;
    case DRUN_ERROR_UNSUPPORTED:
      return error_id::kUnsupported;
    case DRUN_ERROR_TIMEOUT:
      return error_id::kCallTimeout;
    case DRUN_ERROR_PEER:
      return error_id::kPeer;
    case DRUN_ERROR_MISMATCH:
      return error_id::kMismatch;
    case DRUN_ERROR_ABORTED:
      return error_id::kAborted;
    case DRUN_ERROR_CONNECT:
      return error_id::kNotJoined;
    case DRUN_ERROR_TRUNCATED:
      return error_id::kTruncated;
    case DRUN_ERROR_SYSTEM:
      return error_id::kSystem;
    default:
      return error_id::kInternal;
  }
}

}  // namespace

std::string with_code(const Failure& failure) { return failure.text + " [" + std::string(id_of(failure.status)) + "]"; }

Failure from_error(const Error& error, const std::string& what) {
  Failure result;
  result.status = status_of(error.code);
  result.text = what.empty() ? error.message() : what + ": " + error.message();
  if (!error.context.empty()) result.text += "; " + error.context;
  if (!error.hint.empty()) result.text += " (hint: " + error.hint + ")";
  return result;
}

}  // namespace drun::runtime
