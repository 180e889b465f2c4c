#include "transport/ssh_tokens.h"

#include <pwd.h>

#include <cstdlib>

namespace drun::transport {

Result<std::string> expand_tokens(std::string_view text, const SshTokens& tokens) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      out.push_back(text[i]);
      continue;
    }
    if (++i == text.size()) return fail(Errc::kUsage, "a single % at the end (write %%)");
    if (text[i] == '%') {
      out.push_back('%');
    } else if (const auto token = tokens.find(text[i]); token != tokens.end()) {
      out += token->second;
    } else {
      return fail(Errc::kUsage, std::string("unknown token %") + text[i]);
    }
  }
  return out;
}

Result<std::string> expand_environment(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '$' || i + 1 >= text.size() || text[i + 1] != '{') {
      out.push_back(text[i]);
      continue;
    }
    const auto end = text.find('}', i);
    if (end == std::string_view::npos) return fail(Errc::kUsage, "${ is not closed");
    const std::string name(text.substr(i + 2, end - i - 2));
    const char* value = ::getenv(name.c_str());
    if (value == nullptr) return fail(Errc::kUsage, "the environment has no " + name);
    out += value;
    i = end;
  }
  return out;
}

std::string expand_tilde(std::string_view text, const std::string& home) {
  if (text.empty() || text.front() != '~') return std::string(text);
  const auto slash = text.find('/');
  const std::string user(text.substr(1, slash == std::string_view::npos ? slash : slash - 1));
  const std::string rest(slash == std::string_view::npos ? "" : text.substr(slash));
  if (user.empty()) return home.empty() ? std::string(text) : home + rest;
  const passwd* entry = ::getpwnam(user.c_str());
  return entry == nullptr ? std::string(text) : entry->pw_dir + rest;
}

}  // namespace drun::transport
