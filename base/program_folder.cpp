#include "base/program_folder.h"

#include <unistd.h>

namespace drun {

std::string program_folder() {
  char buffer[4096];
  const ssize_t n = ::readlink("/proc/self/exe", buffer, sizeof buffer);
  if (n <= 0) return ".";
  const std::string path(buffer, static_cast<std::size_t>(n));
  return path.substr(0, path.rfind('/'));
}

}  // namespace drun
