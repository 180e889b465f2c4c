#include "base/new_file.h"

#include <fcntl.h>
#include <sys/random.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <utility>

#include "base/text.h"

namespace drun {

NewFile::NewFile(NewFile&& other) noexcept { *this = std::move(other); }

NewFile& NewFile::operator=(NewFile&& other) noexcept {
  if (this == &other) return *this;
  discard();
  path_ = std::move(other.path_);
  temporary_ = std::exchange(other.temporary_, std::string());
  file_ = std::move(other.file_);
  return *this;
}

NewFile::~NewFile() { discard(); }

void NewFile::discard() {
  file_.reset();
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
  temporary_.clear();
}

Result<NewFile> NewFile::create(const std::string& path, mode_t mode) {
  std::string random(8, '\0');
  if (::getrandom(random.data(), random.size(), 0) != static_cast<ssize_t>(random.size())) {
    return fail(errno_error(errno, "getrandom"));
  }
  NewFile out;
  out.path_ = path;
  const std::string temporary = path + "." + hex(random);
  out.file_.reset(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode));
  if (!out.file_) return fail(errno_error(errno, path));
  out.temporary_ = temporary;
  return out;
}

Result<void> NewFile::commit() {
  // Some file systems report a full disk only here.
  if (::close(file_.release()) != 0) {
    const int err = errno;
    discard();
    return fail(errno_error(err, path_));
  }
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) {
    const int err = errno;
    discard();
    return fail(errno_error(err, path_));
  }
  temporary_.clear();
  return {};
}

}  // namespace drun
