// Tokens (%h, %p, ...), ${ENV} and ~ in the values of ssh config. Pure, except for the environment and passwd.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "base/error.h"

namespace drun::transport {

// The text for each token letter; other letters are an error.
using SshTokens = std::map<char, std::string>;

// Expands %x and %%. Error: kUsage, naming the token.
Result<std::string> expand_tokens(std::string_view text, const SshTokens& tokens);
// Expands ${NAME}. Error: kUsage if it is not set.
Result<std::string> expand_environment(std::string_view text);
// Expands ~, ~/..., ~user and ~user/... . `home`: of ~ alone, "" = unknown. A home that is unknown stays as it is.
std::string expand_tilde(std::string_view text, const std::string& home);

}  // namespace drun::transport
