// NCCL's configuration files, which NCCL adds to its environment when it is first used.
#pragma once

#include <string>
#include <string_view>

namespace drun::runtime::gpu {

// The value of the first line "NAME=VALUE" of such a file; empty if there is none. Pure.
std::string nccl_conf_value(std::string_view text, std::string_view name);

// The value that NCCL will have for a variable: that of the environment, else of the file $NCCL_CONF_FILE or
// ~/.nccl.conf, else of /etc/nccl.conf; empty if there is none.
std::string nccl_setting(const char* name);

}  // namespace drun::runtime::gpu
