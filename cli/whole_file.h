// Files that are written whole or not at all: beside their path, then renamed.
#pragma once

#include <string>
#include <string_view>

#include "base/error.h"

namespace drun::cli {

// A pipe or a device at `path` is written to as it is. The error's subject is empty.
Result<void> write_whole(const std::string& path, std::string_view text);
// Whether write_whole() would work now. Leaves nothing behind.
Result<void> check_writable(const std::string& path);

}  // namespace drun::cli
