#include "launcher/output/output_sink.h"

#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <string>

#include "base/stall_watch.h"

namespace drun::launcher {

namespace {
constexpr int kPollInterval = 100;  // ms between checks of the timeout
}

OutputSink::OutputSink(int fd) : fd_(fd) {
  own_ = reopen_nonblocking(fd, O_WRONLY);
  if (own_) {
    kind_ = Kind::kOwn;
    fd_ = own_.get();
    return;
  }
  struct stat info {};
  if (::fstat(fd, &info) != 0) return;
  if (S_ISFIFO(info.st_mode) || S_ISSOCK(info.st_mode) || ::isatty(fd) == 1) kind_ = Kind::kShared;
}

long OutputSink::write_some(std::string_view bytes) const {
  const std::size_t n = kind_ == Kind::kShared ? std::min<std::size_t>(bytes.size(), PIPE_BUF) : bytes.size();
  return ::write(fd_, bytes.data(), n);
}

Result<void> OutputSink::write(std::string_view bytes, const ReaderTimeout& reader_timeout) {
  using Clock = std::chrono::steady_clock;
  auto last = Clock::now();
  StallWatch stops{std::chrono::milliseconds(kPollInterval)};
  while (!bytes.empty()) {
    pollfd p{fd_, POLLOUT, 0};
    if (kind_ == Kind::kShared && ::poll(&p, 1, 0) == 0) {
      errno = EAGAIN;
    } else {
      const long n = write_some(bytes);
      if (n > 0) {
        bytes.remove_prefix(static_cast<std::size_t>(n));
        last = Clock::now();
        continue;
      }
      if (n < 0 && errno == EINTR) continue;
      if (n < 0 && errno != EAGAIN) return fail(errno_error(errno, "write"));
    }
    if (::poll(&p, 1, kPollInterval) != 0) continue;
    last += stops.poll();
    const int limit = reader_timeout.milliseconds();
    if (limit != ReaderTimeout::kForever && Clock::now() - last >= std::chrono::milliseconds(limit)) {
      return fail(Errc::kTimeout, "write", "the reader has stopped reading");
    }
  }
  return {};
}

}  // namespace drun::launcher
