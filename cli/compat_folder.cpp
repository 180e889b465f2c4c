#include "cli/compat_folder.h"

#include <unistd.h>

#include <filesystem>

#include "cli/usage.h"

namespace drun::cli {

namespace {

constexpr int kMaxLevels = 4;  // from build/release/bin up to the tree

bool has_package(const std::string& folder) { return ::access((folder + "/horovod/__init__.py").c_str(), R_OK) == 0; }

std::string parent_of(const std::string& folder) { return std::filesystem::path(folder).parent_path().string(); }

}  // namespace

Result<std::string> find_compat_folder(const std::string& program_folder) {
  // In the order: of a wheel, of a relocatable installation, of Debian's package.
  for (const char* place : {"/compat", "/lib/python/drun/compat", "/lib/python3/dist-packages/drun/compat"}) {
    if (const auto folder = parent_of(program_folder) + place; has_package(folder)) return folder;
  }
  std::string tree = program_folder;
  for (int level = 0; level <= kMaxLevels; ++level) {
    if (const auto folder = tree + "/python/drun/compat"; has_package(folder)) return folder;
    tree = parent_of(tree);
  }
  return fail(usage_error("--compat horovod", "drun's Python package is not beside this drun, in " + program_folder,
                          "install the wheel (python/build-wheel), and start the drun that it brings"));
}

}  // namespace drun::cli
