#include "cli/whole_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "base/fd.h"
#include "base/new_file.h"
#include "cli/usage.h"

namespace drun::cli {

namespace {

bool is_special(const std::string& path) {
  struct stat s {};
  return ::stat(path.c_str(), &s) == 0 && !S_ISREG(s.st_mode) && !S_ISDIR(s.st_mode);
}

Result<NewFile> create(const std::string& path) {
  struct stat s {};
  if (::stat(path.c_str(), &s) == 0 && S_ISDIR(s.st_mode)) return fail(errno_error(EISDIR, path));
  return NewFile::create(path, 0666);
}

}  // namespace

Result<void> write_whole(const std::string& path, std::string_view text) {
  if (is_special(path)) {
    const Fd fd(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
    if (!fd) return fail(errno_error(errno, path));
    return write_all(fd.get(), text, path);
  }
  auto file = create(path);
  if (!file) return fail(std::move(file.error()));
  if (auto written = file->write(text); !written) return written;
  return file->commit();
}

Result<void> check_writable(const std::string& option, const std::string& path) {
  if (is_special(path)) {
    if (::access(path.c_str(), W_OK) != 0) return fail(usage_error(option, errno_error(errno, path).cause));
    return {};
  }
  if (const auto file = create(path); !file) return fail(usage_error(option, file.error().cause));
  return {};
}

}  // namespace drun::cli
