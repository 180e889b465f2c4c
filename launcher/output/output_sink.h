// One of drun's own output descriptors, written at the pace of its reader. Blocking: for the writer's thread.
#pragma once

#include <atomic>
#include <string_view>

#include "base/error.h"
#include "base/fd.h"

namespace drun::launcher {

// Timeout for a reader that accepts no bytes. The I/O thread may set it while the writer's thread is waiting.
class ReaderTimeout {
 public:
  static constexpr int kForever = -1;
  void set(int milliseconds) { milliseconds_ = milliseconds; }
  int milliseconds() const { return milliseconds_; }

 private:
  std::atomic<int> milliseconds_{kForever};
};

class OutputSink {
 public:
  // Borrows `fd`. Its flags are shared with other programs and are not changed: a pipe or a terminal is opened a second
  // time, if that is allowed, for non-blocking writes.
  explicit OutputSink(int fd);
  // Writes all bytes. Errc::kTimeout if the reader accepted nothing for the time that `reader_timeout` holds.
  Result<void> write(std::string_view bytes, const ReaderTimeout& reader_timeout);

 private:
  // kFile: a file or /dev/null, which has no reader to wait for. kShared: a pipe that can't be reopened, or a socket;
  // it accepts a small piece whole if poll() reports room.
  enum class Kind { kFile, kOwn, kShared };
  long write_some(std::string_view bytes) const;

  int fd_;
  Kind kind_ = Kind::kFile;
  Fd own_;
};

}  // namespace drun::launcher
