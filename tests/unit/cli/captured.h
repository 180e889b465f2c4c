// Standard output or standard error in a file.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <string>

#include "base/fd.h"

namespace drun::cli {

// Redirects it to a file during its lifetime.
class Captured {
 public:
  explicit Captured(const std::string& path, int fd = STDOUT_FILENO) : path_(path), fd_(fd), old_(::dup(fd)) {
    const Fd file(::creat(path.c_str(), 0600));
    ::dup2(file.get(), fd_);
  }
  ~Captured() { ::dup2(old_.get(), fd_); }
  std::string text() const { return read_file(path_).value_or(""); }

 private:
  std::string path_;
  int fd_;
  Fd old_;
};

}  // namespace drun::cli
