// The -H list: `[user@]host[:slots]`, commas, `node[01-16,20]:8` (several brackets multiply), `[v6]:n`, raw addresses.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/host.h"

namespace drun::launcher {

// Pure. Errors are Errc::kUsage with subject "-H", a cause that names the item and the column (from 1), and what to
// type as the hint. A host that is named twice is returned twice: see add_slots().
Result<std::vector<Host>> parse_hostlist(std::string_view text);

// The items of a list, without the blanks around them. Commas inside brackets or a list of GPUs separate nothing.
std::vector<std::string> split_hostlist(std::string_view text);

// Parses one item of a list or hostfile, with brackets expanded; `where` is stored in Host::where. A bare IPv6 address
// without brackets ("fd00::2") is accepted as a host without slots. "fd00::2:4" is ambiguous and rejected, with the
// bracketed form as the hint.
Result<std::vector<Host>> parse_host_item(std::string_view item, const std::string& where);

// Merges hosts with equal name, user and port: slots are added, and the position of the first one is kept, as mpirun
// does.
std::vector<Host> add_slots(std::vector<Host> hosts);

// A host as an item of the list: "root@a:2", "[fd00::2]:2"; without slots "root@a", "[fd00::2]".
std::string to_item(const Host& host);
std::string to_item(const Host& host, std::int64_t slots);

// True if `word` looks like a forgotten `host:slots` (`-H a:2 b:2 ./train`): used for a hint on the command.
bool looks_like_host_item(std::string_view word);

}  // namespace drun::launcher
