// TOML as ASCII for toml++, whose behavior is undefined for some letters that no quotation marks enclose. Pure.
#pragma once

#include <string>
#include <string_view>

#include "base/error.h"

namespace drun::cli {

// Replaces each byte of a character that is not ASCII, "~", and "~" as an escape sequence ("\u007e"), by "~" and two
// hexadecimal digits: in strings and comments that changes only their text, and elsewhere TOML has no "~". Lines stay
// lines. Fails with Errc::kUsage and the subject "NAME:LINE" on control characters other than tabs and line ends, and
// on bytes that are not UTF-8.
Result<std::string> toml_to_ascii(std::string_view text, const std::string& name);

// The same for a key or a string value of the result, backwards.
std::string from_toml_ascii(std::string_view text);

}  // namespace drun::cli
