// Tokens (%h, %p, ...), ${ENV} and ~ in the values of ssh config. Pure, but for the environment.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "base/error.h"

namespace drun::transport {

// What each token letter stands for; a letter that is not in it is an error.
using SshTokens = std::map<char, std::string>;

// %x and %%. Error: kUsage, naming the token.
Result<std::string> expand_tokens(std::string_view text, const SshTokens& tokens);
// ${NAME}. Error: kUsage, if it is not set.
Result<std::string> expand_environment(std::string_view text);
// ~ and ~/..., ~user and ~user/... .
std::string expand_tilde(std::string_view text, const std::string& home);

}  // namespace drun::transport
