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

std::string user_folder(const launcher::Environment& env, const char* variable, const char* below_home) {
  const auto absolute_value = [&env](const char* name) {
    const auto found = env.find(name);
    return found != env.end() && found->second.rfind('/', 0) == 0 ? found->second : std::string();
  };
  if (const std::string folder = absolute_value(variable); !folder.empty()) return folder + "/drun";
  const std::string home = absolute_value("HOME");
  return home.empty() ? "" : home + "/" + below_home + "/drun";
}

}  // namespace drun::cli
