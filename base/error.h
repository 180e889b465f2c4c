// Errors are values: they say what failed, why, where, and what to type instead.
#pragma once

#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <vector>

namespace drun {

// The kind of an error, as far as the exit status and the caller's next step depend on it.
enum class Errc {
  kNone = 0,
  kUsage,          // bad option, host list, hostfile or config: status 2
  kUnreachable,    // a host can't be resolved, connected, trusted, logged in to, or run an agent: 68
  kTimeout,        // one of drun's own deadlines passed: 75
  kNotExecutable,  // a worker's command exists but can't be executed: 126
  kNotFound,       // a worker's command does not exist: 127
  kInterrupted,    // the user interrupted drun: 130
  kClosed,         // the peer closed the stream in an orderly way
  kCanceled,       // we closed it ourselves
  kIo,             // a system call failed; `cause` has the system's text
  kProtocol,       // a frame of the wrong size, version, order or content
  kAuth,           // the peer could not prove the job's key
  kPeerFailed,     // another worker failed
  kInternal,       // a bug: 70
};

// Lower case, no full stop. Rendered as "drun: error: SUBJECT: CAUSE", a line per context, "hint: HINT".
struct Error {
  Errc code = Errc::kNone;
  std::string subject;  // the host, option, file:line:column or worker it is about; may be empty
  std::string cause;
  std::string context;  // added by callers that know more; lines separated by '\n'; may be empty
  std::string hint;     // something that can be typed; may be empty
  std::string_view id;  // of base/error_id.h, or a finding's that outlives this; "" = that of `code`

  Error() = default;
  Error(Errc c, std::string why) : code(c), cause(std::move(why)) {}
  Error(Errc c, std::string about, std::string why) : code(c), subject(std::move(about)), cause(std::move(why)) {}

  Error with_hint(std::string text) &&;
  Error with_context(std::string text) &&;  // appends a line
  Error with_subject(std::string text) &&;  // only if there is none yet
  Error with_id(std::string_view name) &&;  // likewise

  // "SUBJECT: CAUSE", without context and hint.
  std::string message() const;
};

// The code that the message carries: "host-key".
std::string_view id_of(const Error& error);

// Merges errors that differ only in their subject: "h1, h2 and h3", or "h1, h2, h3 and 5 others". Ordered by first
// occurrence.
std::vector<Error> fold_errors(const std::vector<Error>& errors);

// An Error from errno: cause is "WHAT: strerror(err)".
Error errno_error(int err, std::string what);

template <typename T>
using Result = tl::expected<T, Error>;

inline tl::unexpected<Error> fail(Error error) { return tl::unexpected<Error>(std::move(error)); }
inline tl::unexpected<Error> fail(Errc code, std::string cause) { return fail(Error(code, std::move(cause))); }
inline tl::unexpected<Error> fail(Errc code, std::string subject, std::string cause) {
  return fail(Error(code, std::move(subject), std::move(cause)));
}

}  // namespace drun
