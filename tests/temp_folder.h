// A directory that lasts as long as the test.
#pragma once

#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>

#include "base/fd.h"

namespace drun::testing {

class TempFolder {
 public:
  TempFolder() : path_(std::filesystem::temp_directory_path().string() + "/drun-test-XXXXXX") {
    if (::mkdtemp(path_.data()) == nullptr) std::abort();
  }
  ~TempFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;

  std::string path(const std::string& name = "") const { return name.empty() ? path_ : path_ + "/" + name; }
  // Only the owner may read and write the file, as ssh requires. Makes the directories above it.
  void write(const std::string& name, const std::string& text) const {
    std::filesystem::create_directories(std::filesystem::path(path(name)).parent_path());
    std::ofstream(path(name), std::ios::binary) << text;
    ::chmod(path(name).c_str(), 0600);
  }
  // "" if there is none.
  std::string read(const std::string& name) const { return read_file(path(name)).value_or(""); }

 private:
  std::string path_;
};

}  // namespace drun::testing
