#include "agent/interpreter.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>

#include "base/fd.h"

namespace drun::agent {

std::string interpreter_in(std::string_view beginning) {
  if (beginning.substr(0, 2) != "#!") return "";
  const auto from = beginning.find_first_not_of(" \t", 2);
  if (from == std::string_view::npos) return "";
  return std::string(beginning.substr(from, beginning.find_first_of(std::string_view(" \t\n\0", 4), from) - from));
}

std::string interpreter_of(const std::string& path) {
  std::array<char, 256> beginning{};  // Linux' BINPRM_BUF_SIZE
  const Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  const ssize_t n = fd ? ::read(fd.get(), beginning.data(), beginning.size()) : 0;
  return n > 0 ? interpreter_in(std::string_view(beginning.data(), static_cast<std::size_t>(n))) : "";
}

}  // namespace drun::agent
