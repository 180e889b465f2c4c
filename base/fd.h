// File descriptors with an owner, and common calls on them.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

#include "base/error.h"

namespace drun {

// Owns one file descriptor, or none (-1). The destructor closes it.
class Fd {
 public:
  Fd() = default;
  explicit Fd(int fd) : fd_(fd) {}
  Fd(Fd&& other) noexcept : fd_(other.release()) {}
  Fd& operator=(Fd&& other) noexcept {
    if (this != &other) reset(other.release());
    return *this;
  }
  Fd(const Fd&) = delete;
  Fd& operator=(const Fd&) = delete;
  ~Fd() { reset(); }

  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }
  int release() { return std::exchange(fd_, -1); }
  void reset(int fd = -1);

 private:
  int fd_ = -1;
};

struct Pipe {
  Fd read;
  Fd write;
};

// Close-on-exec, and above the standard descriptors, which a child may redirect.
Result<Pipe> make_pipe();
Result<void> set_nonblocking(int fd, bool on);
// The pipe or terminal behind `fd`, opened anew so that it does not block: `fd` may be shared with other programs,
// whose flags stay. `access`: O_RDONLY or O_WRONLY. None for other kinds, and for those that this user may not open.
Fd reopen_nonblocking(int fd, int access);
// Reads from the present offset to the end of the file; an error if that is more than `limit` bytes. Works for /proc
// and /sys. The error names no file.
Result<std::string> read_to_end(int fd, std::size_t limit);
// Opens and reads the whole file, in the same way. The error names the path.
Result<std::string> read_file(const std::string& path, std::size_t limit = 64u << 20);
// Blocks until all is written, also on a non-blocking descriptor; retries after EINTR and short writes. The error names
// `what`, such as the path.
Result<void> write_all(int fd, std::string_view bytes, const std::string& what = "write");
// Closes all descriptors from `first` on, except `keep`; for a child before its exec.
void close_others(int first, int keep);
// Raises the soft limit on open files to the hard limit. Returns the limit now in force.
std::size_t raise_open_file_limit();
// The soft limit on open files with which this process was started.
std::size_t open_file_limit_at_start();
// Restores the limit with which this process was started; for a child before its exec. Async-signal-safe.
void restore_open_file_limit();

}  // namespace drun
