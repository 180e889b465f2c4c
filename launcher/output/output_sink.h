// One of drun's own output descriptors, at the pace of its reader. Blocking: for the writer's thread.
#pragma once

#include <atomic>
#include <string_view>

#include "base/error.h"
#include "base/fd.h"

namespace drun::launcher {

// How long a reader that takes nothing is waited for. Set by the I/O thread while the writer's may wait.
class Patience {
 public:
  static constexpr int kForever = -1;
  void set(int milliseconds) { milliseconds_ = milliseconds; }
  int milliseconds() const { return milliseconds_; }

 private:
  std::atomic<int> milliseconds_{kForever};
};

class OutputSink {
 public:
  // Borrows `fd`. Its flags are shared with other programs and are left alone: a pipe or a terminal is opened a second
  // time, where that is allowed, to be written without blocking.
  explicit OutputSink(int fd);
  // All of it; Errc::kTimeout when the reader took nothing for as long as `patience` says.
  Result<void> write(std::string_view bytes, const Patience& patience);

 private:
  // A file or /dev/null has no reader to wait for. A pipe that can't be opened again takes a small piece whole once
  // poll says that there is room.
  enum class Kind { kFile, kOwn, kShared };
  long write_some(std::string_view bytes) const;

  int fd_;
  Kind kind_ = Kind::kFile;
  Fd own_;
};

}  // namespace drun::launcher
