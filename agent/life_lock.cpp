#include "agent/life_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <cerrno>

namespace drun::agent {

namespace {

std::optional<Fd> lock(const std::string& directory, int how) {
  Fd fd(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!fd) return std::nullopt;
  if (::flock(fd.get(), how | LOCK_NB) != 0 && errno == EWOULDBLOCK) return std::nullopt;
  // The directory may have been removed between open and flock, which makes the lock void.
  struct stat opened {
  }, named{};
  if (::fstat(fd.get(), &opened) != 0 || ::lstat(directory.c_str(), &named) != 0) return std::nullopt;
  if (opened.st_dev != named.st_dev || opened.st_ino != named.st_ino) return std::nullopt;
  return fd;
}

}  // namespace

std::optional<Fd> lock_as_maker(const std::string& directory) { return lock(directory, LOCK_SH); }
std::optional<Fd> lock_as_remover(const std::string& directory) { return lock(directory, LOCK_EX); }

}  // namespace drun::agent
