#include "cli/paths.h"

#include <unistd.h>

#include <climits>
#include <cstdlib>
#include <filesystem>

namespace drun::cli {

std::string current_directory() {
  const char* pwd = std::getenv("PWD");
  char buffer[PATH_MAX];
  if (::getcwd(buffer, sizeof buffer) == nullptr) return "/";
  std::error_code ec;
  if (pwd != nullptr && *pwd == '/' && std::filesystem::equivalent(pwd, buffer, ec)) return pwd;
  return buffer;
}

std::string absolute(const std::string& path) {
  return path.empty() || path[0] == '/' ? path : current_directory() + "/" + path;
}

}  // namespace drun::cli
