// A descriptor that is another one for a while.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include "base/fd.h"

namespace drun::testing {

// `fd` is what `target` is, during its lifetime.
class RedirectedFd {
 public:
  RedirectedFd(int fd, int target) : fd_(fd), before_(::fcntl(fd, F_DUPFD_CLOEXEC, 3)) { ::dup2(target, fd_); }
  ~RedirectedFd() { ::dup2(before_.get(), fd_); }
  RedirectedFd(const RedirectedFd&) = delete;
  RedirectedFd& operator=(const RedirectedFd&) = delete;

 private:
  int fd_;
  Fd before_;
};

}  // namespace drun::testing
