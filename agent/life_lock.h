// Liveness lock (flock) on a directory: the kernel drops it with its last holder, and it is visible from every PID
// namespace.
//
// The maker of a directory takes the lock shared before anything else, and makes another directory if it can't. A
// remover takes it exclusively and holds it until the directory is gone. So a directory whose maker is still starting
// is never removed or mistaken for a leftover.
#pragma once

#include <optional>
#include <string>

#include "base/fd.h"

namespace drun::agent {

// The maker's lock. Nothing: a remover holds the lock right now, or has removed the directory.
std::optional<Fd> lock_as_maker(const std::string& directory);
// The remover's lock. Nothing: the maker lives, another remover holds the lock, or the directory is gone.
std::optional<Fd> lock_as_remover(const std::string& directory);
// On a file system without locks, both succeed.

// Number of directories that a maker tries before it gives up.
inline constexpr int kMakerTries = 10;

}  // namespace drun::agent
