// A pipe whose reader sleeps, and what it reads when it wakes up.
#pragma once

#include <poll.h>
#include <unistd.h>

#include <cstddef>
#include <string>

#include "base/fd.h"

namespace drun::testing {

// Fills the pipe. Returns the number of bytes.
inline std::size_t fill_pipe(int fd) {
  set_nonblocking(fd, true);
  const std::string chunk(4096, '.');
  std::size_t n_bytes = 0;
  for (ssize_t n = 0; (n = ::write(fd, chunk.data(), chunk.size())) > 0;) n_bytes += static_cast<std::size_t>(n);
  set_nonblocking(fd, false);
  return n_bytes;
}

// Reads until the text ends with `end`, the writer has closed the pipe, or nothing comes for 20 s.
inline std::string read_to(int fd, const std::string& end) {
  std::string text;
  char bytes[4096];
  while (text.size() < end.size() || text.compare(text.size() - end.size(), end.size(), end) != 0) {
    pollfd p{fd, POLLIN, 0};
    if (::poll(&p, 1, 20'000) != 1) break;
    const ssize_t n = ::read(fd, bytes, sizeof bytes);
    if (n <= 0) break;
    text.append(bytes, static_cast<std::size_t>(n));
  }
  return text;
}

}  // namespace drun::testing
