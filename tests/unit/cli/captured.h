// Standard output or standard error in a file.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <string>

#include "base/fd.h"
#include "tests/redirected_fd.h"

namespace drun::cli {

// Redirects it to a file during its lifetime.
class Captured {
 public:
  explicit Captured(const std::string& path, int fd = STDOUT_FILENO)
      : path_(path), redirected_(fd, Fd(::creat(path.c_str(), 0600)).get()) {}
  std::string text() const { return read_file(path_).value_or(""); }

 private:
  std::string path_;
  testing::RedirectedFd redirected_;
};

}  // namespace drun::cli
