// --exclude: hosts that are left out of the list, the hostfile or the batch scheduler's job. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/host.h"

namespace drun::launcher {

// The hosts of one item: `b`, `root@b`, `n[03-05]`, an IPv6 address. An item with slots or GPUs is an error: only whole
// hosts are left out. Errors are Errc::kUsage with the subject "--exclude".
Result<std::vector<Host>> parse_excluded(std::string_view item);

// `hosts` without those of the names of `excluded`, whatever their case and ports; a user counts only if `excluded` has
// one. In a batch scheduler's job a short name also means the one host of that name in some domain, and the other way
// round. A name that no host has is an error, and so is nothing left. Slots and GPUs of `excluded` mean nothing.
Result<std::vector<Host>> leave_out(std::vector<Host> hosts, const std::vector<Host>& excluded);

}  // namespace drun::launcher
