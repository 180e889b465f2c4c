// The -H list: `[user@]host[:slots]`, commas, `node[01-16,20]:8` (several brackets multiply), `[v6]:n`, raw addresses.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/host.h"

namespace drun::launcher {

// Pure. Errors are Errc::kUsage with subject "-H" and a cause that names item and column (from 1) and what to type.
// A host named twice stays twice here: see add_slots().
Result<std::vector<Host>> parse_hostlist(std::string_view text);

// One item of a list or hostfile, brackets expanded; `where` as in Host::where. A bare IPv6 address without brackets
// ("fd00::2") is accepted as a host without slots; "fd00::2:4" is ambiguous and refused with the bracketed form as
// hint.
Result<std::vector<Host>> parse_host_item(std::string_view item, const std::string& where);

// Merges hosts with equal name, user and port: slots are added, the first one's place is kept, as mpirun does.
std::vector<Host> add_slots(std::vector<Host> hosts);

// A host as an item of the list: "root@a:2", "[fd00::2]:2".
std::string to_item(const Host& host, std::int64_t slots);

// True if `word` looks like a forgotten `host:slots` (`-H a:2 b:2 ./train`): used for a hint on the command.
bool looks_like_host_item(std::string_view word);

}  // namespace drun::launcher
