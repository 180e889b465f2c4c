// A file that is written beside its path and then takes the place of what is there, so that no reader sees a part.
#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>

#include "base/error.h"
#include "base/fd.h"

namespace drun {

// Until commit() its name is `path`, a dot and random digits. It is always a new file: other users who may write to the
// directory (/tmp) can't make drun write to another file by a link of that name.
class NewFile {
 public:
  NewFile() = default;
  NewFile(NewFile&& other) noexcept;
  NewFile& operator=(NewFile&& other) noexcept;
  ~NewFile();  // removes the file, unless it was committed

  static Result<NewFile> create(const std::string& path, mode_t mode);
  explicit operator bool() const { return static_cast<bool>(file_); }
  int fd() const { return file_.get(); }
  Result<void> write(std::string_view bytes) { return write_all(file_.get(), bytes, path_); }
  // Closes it and gives it its path. On an error the old file is still there.
  Result<void> commit();

 private:
  void discard();

  std::string path_;
  std::string temporary_;  // "" = none to remove
  Fd file_;
};

}  // namespace drun
