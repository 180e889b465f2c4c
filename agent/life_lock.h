// A lock on a directory says that its maker lives: the kernel drops it with the last who holds it, and it is seen from
// every PID namespace.
//
// The maker takes it before anything else, and makes another directory if it can't. Who would remove the directory of
// one that is gone takes it too, and holds it until he is done. So none is removed, or taken for left over, whose maker
// has only begun.
#pragma once

#include <optional>
#include <string>

#include "base/fd.h"

namespace drun::agent {

// The maker's. Nothing: somebody looks at the directory right now, or has removed it.
std::optional<Fd> lock_as_maker(const std::string& directory);
// Nothing: its maker lives, somebody else looks at it, or it is gone.
std::optional<Fd> lock_as_remover(const std::string& directory);
// Where the file system has no locks, both say yes.

// How often a maker makes another before it gives up.
inline constexpr int kMakerTries = 10;

}  // namespace drun::agent
