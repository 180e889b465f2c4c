// Standard output in a file.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <string>

#include "base/fd.h"

namespace drun::cli {

// Redirects standard output to a file during its lifetime.
class Captured {
 public:
  explicit Captured(const std::string& path) : path_(path), old_(::dup(STDOUT_FILENO)) {
    const Fd fd(::creat(path.c_str(), 0600));
    ::dup2(fd.get(), STDOUT_FILENO);
  }
  ~Captured() { ::dup2(old_.get(), STDOUT_FILENO); }
  std::string text() const { return read_file(path_).value_or(""); }

 private:
  std::string path_;
  Fd old_;
};

}  // namespace drun::cli
