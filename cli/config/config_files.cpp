#include "cli/config/config_files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <optional>
#include <utility>

#include "base/error_id.h"
#include "base/fd.h"
#include "base/text.h"
#include "cli/paths.h"
#include "cli/usage.h"

namespace drun::cli {

namespace {

constexpr const char* kNoFile = "none";
constexpr mode_t kOthersWrite = S_IWGRP | S_IWOTH;

// A pipe, as of `--config <(generate)`, has no folder of its own.
std::string folder_of(const std::string& path) {
  struct stat s {};
  if (::stat(path.c_str(), &s) != 0 || !S_ISREG(s.st_mode)) return current_directory();
  const auto folder = std::filesystem::path(absolute(path)).parent_path();
  std::error_code error;
  const auto real = std::filesystem::canonical(folder, error);
  return error ? folder.string() : real.string();
}

Result<ConfigFile> parsed(const std::string& text, const std::string& name, std::string folder) {
  auto entries = parse_config(text, name);
  if (!entries) return fail(std::move(entries.error()));
  ConfigFile out;
  out.name = name;
  out.folder = std::move(folder);
  out.entries = std::move(*entries);
  return out;
}

struct Candidate {
  std::string path;  // absolute
  std::string name;  // for people
  bool is_of_project = false;
};

// The working directory, and the directories above it up to one with `.git`; without one, only the first.
std::vector<Candidate> project_candidates(const std::string& working_directory) {
  std::vector<Candidate> out;
  std::string up;
  for (std::filesystem::path folder = working_directory;; folder = folder.parent_path()) {
    out.push_back({(folder / kConfigName).string(), up + kConfigName, true});
    std::error_code ignored;
    if (std::filesystem::exists(folder / ".git", ignored)) return out;
    if (!folder.has_relative_path()) break;
    up += "../";
  }
  out.resize(1);
  return out;
}

std::string users_text(uid_t user) { return user == 0 ? "root" : "user " + std::to_string(user); }

// Fails if another user than the caller and root can have written the file.
Result<void> check_owner(const Candidate& candidate, const struct stat& s, uid_t user) {
  if (!S_ISREG(s.st_mode)) return fail(usage_error(candidate.name, "is not a regular file", "--config none"));
  if (s.st_uid != user && s.st_uid != 0) {
    return fail(usage_error(candidate.name,
                            "belongs to " + users_text(s.st_uid) + ", and drun runs as " + users_text(user) +
                                ": drun does not take options from another user's file",
                            "--config " + shell_quote(candidate.name) + " if you trust it, or --config none"));
  }
  if (!candidate.is_of_project && (s.st_mode & kOthersWrite) != 0) {
    return fail(usage_error(candidate.name, "other users may write to it, and it may choose programs that drun runs",
                            "chmod go-w " + shell_quote(candidate.path)));
  }
  return {};
}

using FileId = std::pair<dev_t, ino_t>;

FileId id_of(const std::string& path) {
  struct stat s {};
  return ::stat(path.c_str(), &s) == 0 ? FileId(s.st_dev, s.st_ino) : FileId();
}

// Nothing if there is no such file.
Result<std::optional<ConfigFile>> read_candidate(const Candidate& candidate, uid_t user) {
  struct stat s {};
  if (::lstat(candidate.path.c_str(), &s) != 0) return std::nullopt;
  // The open of a FIFO must not block.
  const Fd fd(::open(candidate.path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (!fd || ::fstat(fd.get(), &s) != 0) {
    return fail(usage_error(candidate.name, errno_error(errno, "can't be read").cause, "--config none"));
  }
  if (auto ok = check_owner(candidate, s, user); !ok) return fail(std::move(ok.error()));
  auto text = read_to_end(fd.get(), kMaxConfigBytes);
  if (!text) return fail(usage_error(candidate.name, text.error().cause, "--config none"));
  auto file = parsed(*text, candidate.name, std::filesystem::path(candidate.path).parent_path().string());
  if (!file) return fail(std::move(file.error()));
  file->is_of_project = candidate.is_of_project;
  return std::move(*file);
}

std::string value_or_empty(const launcher::Environment& env, const char* name) {
  const auto found = env.find(name);
  return found == env.end() ? "" : found->second;
}

ConfigPlaces usual_places(const launcher::Environment& own_env) {
  ConfigPlaces out;
  std::error_code ignored;
  out.working_directory = std::filesystem::current_path(ignored).string();  // without links: the parents are real
  out.user_file = user_config(own_env);
  out.user = ::geteuid();
  return out;
}

// `named`: of --config; null = without it.
Result<std::vector<ConfigFile>> named_or_found(const std::string* named, const launcher::Environment& own_env) {
  if (named == nullptr) return find_configs(usual_places(own_env));
  std::vector<ConfigFile> out;
  if (*named == kNoFile) return out;
  auto file = read_named_config(*named);
  if (!file) return fail(std::move(file.error()));
  out.push_back(std::move(*file));
  return out;
}

// The first file of a working directory that chose hosts: by itself, or by a group in -H.
std::string hosts_file(const std::vector<ConfigFile>& files, const AppliedConfig& applied,
                       const std::vector<std::string>& groups) {
  std::vector<std::string> names = {applied.origins.file_of("--hosts"), applied.origins.file_of("--hostfile")};
  for (const auto& group : applied.groups) {
    if (std::find(groups.begin(), groups.end(), group.name) != groups.end()) names.push_back(group.file);
  }
  const auto found = std::find_if(files.begin(), files.end(), [&names](const ConfigFile& file) {
    return file.is_of_project && std::find(names.begin(), names.end(), file.name) != names.end();
  });
  return found == files.end() ? "" : found->name;
}

}  // namespace

std::string user_config(const launcher::Environment& own_env) {
  const std::string folder = user_folder(own_env, "XDG_CONFIG_HOME", ".config");
  return folder.empty() ? "" : folder + "/" + kConfigName;
}

Result<ConfigFile> read_named_config(const std::string& path) {
  if (path.empty()) return fail(usage_error("--config", "the name of the file is empty", "--config job.toml"));
  auto text = read_file(path, kMaxConfigBytes);
  if (!text) return fail(usage_error("--config", text.error().message()));
  return parsed(*text, path, folder_of(path));
}

Result<std::vector<ConfigFile>> find_configs(const ConfigPlaces& places) {
  std::vector<Candidate> candidates;
  const FileId users = id_of(places.user_file);
  if (!places.working_directory.empty()) {
    for (auto& candidate : project_candidates(places.working_directory)) {
      // In ~/.config/drun the file is the user's.
      const bool is_users = users != FileId() && id_of(candidate.path) == users;
      if (!is_users) candidates.push_back(std::move(candidate));
    }
  }
  if (!places.user_file.empty()) candidates.push_back({places.user_file, places.user_file, false});
  std::vector<ConfigFile> out;
  for (const auto& candidate : candidates) {
    auto file = read_candidate(candidate, places.user);
    if (!file) return fail(std::move(file.error()));
    if (*file) out.push_back(std::move(**file));
  }
  return out;
}

std::vector<std::string> group_names(const std::string& named, const launcher::Environment& own_env) {
  std::vector<std::string> out;
  const auto files = named_or_found(named.empty() ? nullptr : &named, own_env);
  if (!files) return out;
  for (const auto& file : *files) {
    for (const auto& entry : file.entries) {
      if (entry.key != "hosts" || entry.shape != ConfigEntry::Shape::kTable) continue;
      const auto table = read_host_table(entry, file.name);
      if (!table) continue;
      for (const auto& group : table->groups) {
        if (std::find(out.begin(), out.end(), group.name) == out.end()) out.push_back(group.name);
      }
    }
  }
  return out;
}

Result<ConfigUse> read_config(CLI::App& app, const std::string& command, RawHostOptions& raw,
                              const launcher::Environment& own_env) {
  const bool is_named = app.count("--config") > 0;
  const std::string ssh_option = typed_ssh_option(app);
  const auto files = named_or_found(is_named ? &raw.config : nullptr, own_env);
  if (!files) return fail(Error(files.error()).with_id(error_id::kConfigFile));
  auto applied = apply_config(app, command, value_or_empty(own_env, "HOME"), *files);
  if (!applied) return fail(std::move(applied.error()).with_id(error_id::kConfigFile));
  if (auto ok = check_launch_agent(raw, ssh_option); !ok) return fail(std::move(ok.error()));
  const ConfigOrigins& origins = applied->origins;
  raw.hosts_are_found = !is_named && (origins.has("--hosts") || origins.has("--hostfile"));
  ConfigUse out;
  out.sources.files.reserve(files->size());
  for (const auto& file : *files) out.sources.files.push_back(file.name);
  out.sources.hosts_file = hosts_file(*files, *applied, groups_in(raw.hosts));
  out.sources.places = applied->origins.places();
  raw.groups = std::move(applied->groups);
  out.origins = std::move(applied->origins);
  return out;
}

}  // namespace drun::cli
