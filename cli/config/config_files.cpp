#include "cli/config/config_files.h"

#include <sys/stat.h>

#include <filesystem>
#include <utility>

#include "base/fd.h"
#include "cli/paths.h"
#include "cli/usage.h"

namespace drun::cli {

namespace {

constexpr std::size_t kMaxBytes = 1u << 20;

// A pipe, as of `--config <(generate)`, has no folder of its own.
std::string folder_of(const std::string& path) {
  struct stat s {};
  if (::stat(path.c_str(), &s) != 0 || !S_ISREG(s.st_mode)) return current_directory();
  return std::filesystem::path(absolute(path)).parent_path().string();
}

}  // namespace

Result<ConfigFile> read_named_config(const std::string& path) {
  if (path.empty()) return fail(usage_error("--config", "the name of the file is empty", "--config job.toml"));
  auto text = read_file(path, kMaxBytes);
  if (!text) return fail(usage_error("--config", text.error().message()));
  auto entries = parse_config(*text, path);
  if (!entries) return fail(std::move(entries.error()));
  ConfigFile out;
  out.name = path;
  out.folder = folder_of(path);
  out.entries = std::move(*entries);
  return out;
}

Result<ConfigOrigins> read_config(CLI::App& app, const std::string& command, const std::string& named,
                                  const launcher::Environment& own_env) {
  if (app.count("--config") == 0) return ConfigOrigins();
  auto file = read_named_config(named);
  if (!file) return fail(std::move(file.error()));
  const auto home = own_env.find("HOME");
  return apply_config(app, command, home == own_env.end() ? "" : home->second, {std::move(*file)});
}

}  // namespace drun::cli
