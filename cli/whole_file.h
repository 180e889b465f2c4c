// Writes files atomically: beside their path, then renamed.
#pragma once

#include <string>
#include <string_view>

#include "base/error.h"

namespace drun::cli {

// If `path` is a pipe or a device, writes to it directly. The error's subject is empty.
Result<void> write_whole(const std::string& path, std::string_view text);
// Checks that write_whole() would work now, for the file of `option`, which the usage error names. Leaves nothing
// behind.
Result<void> check_writable(const std::string& option, const std::string& path);

}  // namespace drun::cli
