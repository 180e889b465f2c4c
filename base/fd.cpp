#include "base/fd.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>

namespace drun {

void Fd::reset(int fd) {
  if (fd_ >= 0) ::close(fd_);
  fd_ = fd;
}

Result<Pipe> make_pipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return fail(errno_error(errno, "pipe"));
  Pipe pipe{Fd(ends[0]), Fd(ends[1])};
  for (Fd* end : {&pipe.read, &pipe.write}) {
    if (end->get() > STDERR_FILENO) continue;
    Fd higher(::fcntl(end->get(), F_DUPFD_CLOEXEC, STDERR_FILENO + 1));
    if (!higher) return fail(errno_error(errno, "pipe"));
    *end = std::move(higher);
  }
  return pipe;
}

Result<void> set_nonblocking(int fd, bool on) {
  const int flags = ::fcntl(fd, F_GETFL);
  if (flags < 0) return fail(errno_error(errno, "fcntl"));
  const int wanted = on ? (flags | O_NONBLOCK) : (flags & ~O_NONBLOCK);
  if (wanted != flags && ::fcntl(fd, F_SETFL, wanted) != 0) return fail(errno_error(errno, "fcntl"));
  return {};
}

Fd reopen_nonblocking(int fd, int access) {
  struct stat info {};
  if (::fstat(fd, &info) != 0 || (!S_ISFIFO(info.st_mode) && ::isatty(fd) != 1)) return {};
  return Fd(::open(("/proc/self/fd/" + std::to_string(fd)).c_str(), access | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
}

Result<std::string> read_to_end(int fd, std::size_t limit) {
  std::string out;
  // Reserves once: growing would copy a large file several times. st_size is meaningless in /proc and /sys.
  struct stat s {};
  if (::fstat(fd, &s) == 0 && S_ISREG(s.st_mode) && s.st_size > 0) {
    out.reserve(std::min(static_cast<std::size_t>(s.st_size), limit));
  }
  char buffer[65536];
  for (;;) {
    const ssize_t n = ::read(fd, buffer, sizeof buffer);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return fail(errno_error(errno, ""));
    if (n == 0) return out;
    if (out.size() + static_cast<std::size_t>(n) > limit) {
      return fail(Errc::kIo, "larger than " + std::to_string(limit) + " bytes");
    }
    out.append(buffer, static_cast<std::size_t>(n));
  }
}

Result<std::string> read_file(const std::string& path, std::size_t limit) {
  const Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return fail(errno_error(errno, path));
  auto text = read_to_end(fd.get(), limit);
  if (!text) return fail(std::move(text.error()).with_subject(path));
  return text;
}

Result<void> write_all(int fd, std::string_view bytes, const std::string& what) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(fd, bytes.data(), bytes.size());
    if (n >= 0) {
      bytes.remove_prefix(static_cast<std::size_t>(n));
      continue;
    }
    if (errno == EINTR) continue;
    if (errno == EAGAIN) {
      pollfd p{fd, POLLOUT, 0};
      ::poll(&p, 1, -1);
      continue;
    }
    return fail(errno_error(errno, what));
  }
  return {};
}

namespace {

// False: the kernel has no close_range().
bool close_range(unsigned first, unsigned last) {
  return first > last || ::syscall(SYS_close_range, first, last, 0u) == 0;
}

}  // namespace

void close_others(int first, int keep) {
  const auto low = static_cast<unsigned>(first), kept = static_cast<unsigned>(keep);
  const bool is_beyond = keep < first;
  if (close_range(low, is_beyond ? ~0u : kept - 1) && (is_beyond || close_range(kept + 1, ~0u))) return;
  DIR* open_files = ::opendir("/proc/self/fd");
  if (open_files == nullptr) return;
  while (const dirent* entry = ::readdir(open_files)) {
    const int fd = std::atoi(entry->d_name);
    if (fd >= first && fd != keep && fd != ::dirfd(open_files)) ::close(fd);
  }
  ::closedir(open_files);
}

namespace {
rlimit limit_at_start{};  // rlim_max 0 = nothing to restore
}

std::size_t raise_open_file_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return 0;
  if (limit_at_start.rlim_max == 0) limit_at_start = limit;
  if (limit.rlim_cur < limit.rlim_max) {
    limit.rlim_cur = limit.rlim_max;
    ::setrlimit(RLIMIT_NOFILE, &limit);
    ::getrlimit(RLIMIT_NOFILE, &limit);
  }
  return static_cast<std::size_t>(limit.rlim_cur);
}

std::size_t open_file_limit_at_start() {
  rlimit limit = limit_at_start;
  if (limit.rlim_max == 0) ::getrlimit(RLIMIT_NOFILE, &limit);
  return static_cast<std::size_t>(limit.rlim_cur);
}

void restore_open_file_limit() {
  if (limit_at_start.rlim_max > 0) ::setrlimit(RLIMIT_NOFILE, &limit_at_start);
}

}  // namespace drun
