#include "cli/whole_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "base/fd.h"

namespace drun::cli {

namespace {

std::string temporary_name(const std::string& path) { return path + "." + std::to_string(::getpid()); }

bool is_special(const std::string& path) {
  struct stat s {};
  return ::stat(path.c_str(), &s) == 0 && !S_ISREG(s.st_mode) && !S_ISDIR(s.st_mode);
}

Result<Fd> create(const std::string& path, const std::string& temporary) {
  struct stat s {};
  if (::stat(path.c_str(), &s) == 0 && S_ISDIR(s.st_mode)) return fail(errno_error(EISDIR, path));
  Fd fd(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
  if (!fd) return fail(errno_error(errno, path));
  return fd;
}

}  // namespace

Result<void> write_whole(const std::string& path, std::string_view text) {
  if (is_special(path)) {
    const Fd fd(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
    if (!fd) return fail(errno_error(errno, path));
    return write_all(fd.get(), text);
  }
  const std::string temporary = temporary_name(path);
  auto fd = create(path, temporary);
  if (!fd) return fail(std::move(fd.error()));
  auto written = write_all(fd->get(), text);
  if (written && ::rename(temporary.c_str(), path.c_str()) != 0) written = fail(errno_error(errno, path));
  if (!written) ::unlink(temporary.c_str());
  return written;
}

Result<void> check_writable(const std::string& path) {
  if (is_special(path)) {
    if (::access(path.c_str(), W_OK) != 0) return fail(errno_error(errno, path));
    return {};
  }
  const std::string temporary = temporary_name(path);
  auto fd = create(path, temporary);
  if (!fd) return fail(std::move(fd.error()));
  ::unlink(temporary.c_str());
  return {};
}

}  // namespace drun::cli
