#include "base/error.h"

#include <algorithm>
#include <system_error>

#include "base/error_id.h"
#include "base/wording.h"

namespace drun {

Error Error::with_hint(std::string text) && {
  hint = std::move(text);
  return std::move(*this);
}

Error Error::with_context(std::string text) && {
  if (!context.empty()) context += '\n';
  context += text;
  return std::move(*this);
}

Error Error::with_subject(std::string text) && {
  if (subject.empty()) subject = std::move(text);
  return std::move(*this);
}

Error Error::with_id(std::string_view name) && {
  if (id.empty()) id = name;
  return std::move(*this);
}

std::string_view id_of(const Error& error) {
  if (!error.id.empty()) return error.id;
  switch (error.code) {
    case Errc::kUsage:
      return error_id::kUsage;
    case Errc::kUnreachable:
      return error_id::kUnreachable;
    case Errc::kTimeout:
      return error_id::kDeadline;
    case Errc::kNotExecutable:
      return error_id::kNotExecutable;
    case Errc::kNotFound:
      return error_id::kNotFound;
    case Errc::kInterrupted:
      return error_id::kInterrupted;
    case Errc::kClosed:
    case Errc::kCanceled:
    case Errc::kIo:
      return error_id::kIo;
    case Errc::kProtocol:
      return error_id::kProtocol;
    case Errc::kAuth:
      return error_id::kWrongKey;
    case Errc::kPeerFailed:
      return error_id::kPeerFailed;
    case Errc::kNone:
    case Errc::kInternal:
      break;
  }
  return error_id::kInternal;
}

std::string Error::message() const { return subject.empty() ? cause : subject + ": " + cause; }

std::vector<Error> fold_errors(const std::vector<Error>& errors) {
  constexpr std::size_t kMaxNamed = 7;
  std::vector<Error> out;
  std::vector<std::vector<std::string>> subjects;  // by index in `out`
  for (const Error& e : errors) {
    const auto same = [&e](const Error& other) {
      return e.code == other.code && e.cause == other.cause && e.context == other.context && e.hint == other.hint &&
             e.id == other.id && !e.subject.empty() && !other.subject.empty();
    };
    const auto known = std::find_if(out.begin(), out.end(), same);
    if (known == out.end()) {
      out.push_back(e);
      subjects.push_back({e.subject});
    } else {
      subjects[static_cast<std::size_t>(known - out.begin())].push_back(e.subject);
    }
  }
  for (std::size_t i = 0; i < out.size(); ++i) {
    if (subjects[i].size() > 1) out[i].subject = list_some(subjects[i], kMaxNamed, "others");
  }
  return out;
}

Error errno_error(int err, std::string what) {
  std::string words = std::generic_category().message(err);
  if (!words.empty() && words[0] >= 'A' && words[0] <= 'Z') words[0] = static_cast<char>(words[0] - 'A' + 'a');
  return Error(Errc::kIo, what.empty() ? words : std::move(what) + ": " + words);
}

}  // namespace drun
