#include "base/error.h"

#include <system_error>

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

std::string Error::message() const { return subject.empty() ? cause : subject + ": " + cause; }

Error errno_error(int err, std::string what) {
  std::string words = std::generic_category().message(err);
  if (!words.empty() && words[0] >= 'A' && words[0] <= 'Z') words[0] = static_cast<char>(words[0] - 'A' + 'a');
  return Error(Errc::kIo, std::move(what) + ": " + words);
}

}  // namespace drun
