// One `[user@]host[:slots]` word, as -H and hostfiles share it. Private to them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "launcher/host.h"
#include "launcher/host_range.h"

namespace drun::launcher {

// More workers than that on one host is a port that was typed in the place of the slots.
inline constexpr int kMaxSlots = 1024;

// The hosts of one word, brackets expanded. `where` goes into Host::where.
FaultOr<std::vector<Host>> host_item(std::string_view item, const std::string& where);

// A slot count of 1..kMaxSlots. `offset` is where `digits` begins, for the fault.
FaultOr<int> slot_count(std::string_view digits, std::size_t offset);

// A name to log in with: what no shell and no ssh option parser can take for something else.
FaultOr<void> check_user(std::string_view user, std::size_t offset);

}  // namespace drun::launcher
