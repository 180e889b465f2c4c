#include "agent/forked_call.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <boost/asio/buffer.hpp>

#include "agent/fork_child.h"
#include "base/bytes.h"
#include "base/fd.h"

namespace drun::agent {

namespace {

constexpr char kStep = 'S', kValue = 'V';
constexpr std::size_t kHead = 1 + sizeof(std::uint32_t);

std::string encode(char kind, std::string_view text) {
  ByteWriter out;
  out.raw(std::string_view(&kind, 1));
  out.str(text);
  return out.take();
}

[[noreturn]] void run_and_answer(const ForkedFunction& function, const Fd& out) {
  // A child that hangs must not hold open what the agent closes: the channel to drun and the workers' pipes.
  const int null = ::open("/dev/null", O_RDWR);
  for (const int standard : {STDIN_FILENO, STDOUT_FILENO}) {
    if (null < 0 || ::dup2(null, standard) < 0) ::_exit(1);
  }
  close_others(STDERR_FILENO + 1, out.get());
  const ReportStep report = [&out](const std::string& step) {
    [[maybe_unused]] const auto written = write_all(out.get(), ForkedAnswer::encode_step(step));
  };
  const bool written = write_all(out.get(), ForkedAnswer::encode_value(function(report))).has_value();
  ::_exit(written ? 0 : 1);
}

}  // namespace

std::string ForkedAnswer::encode_step(std::string_view step) { return encode(kStep, step); }

std::string ForkedAnswer::encode_value(std::string_view value) { return encode(kValue, value); }

void ForkedAnswer::push(std::string_view bytes) {
  bytes_ += bytes;
  while (bytes_.size() >= kHead) {
    const std::size_t n = ByteReader(std::string_view(bytes_).substr(1)).u32();
    if (bytes_.size() - kHead < n) return;
    std::string text = bytes_.substr(kHead, n);
    if (bytes_[0] == kValue) {
      result_.value = std::move(text);
    } else {
      result_.step = std::move(text);
    }
    bytes_.erase(0, kHead + n);
  }
}

Task<ForkedResult> ForkedCalls::call(ForkedFunction function, Deadline deadline) {
  ForkedAnswer answer;
  if (stopped_) {
    ForkedResult canceled;
    canceled.late = true;
    co_return canceled;
  }
  auto pipe = make_pipe();
  if (!pipe) co_return answer.result();
  const pid_t pid = fork_child();
  if (pid < 0) co_return answer.result();
  if (pid == 0) run_and_answer(function, pipe->write);
  pipe->write.reset();
  set_nonblocking(pipe->read.get(), true);
  Stream stream(io_, pipe->read.release());
  running_[pid] = &stream;
  std::string chunk(16u << 10, '\0');
  bool late = false;
  {
    const std::function<void()> cancel = [&stream] {
      boost::system::error_code ignored;
      stream.close(ignored);
    };
    DeadlineGuard guard(io_.get_executor(), deadline, cancel);
    while (!answer.result().value) {
      const auto buffer = asio::buffer(chunk);
      const auto [ec, n] = co_await stream.async_read_some(buffer, as_result);
      if (ec) break;
      answer.push(std::string_view(chunk).substr(0, n));
    }
    late = !answer.result().value && (guard.fired() || stopped_);
  }
  if (const auto running = running_.find(pid); running != running_.end()) {
    running->second = nullptr;
    if (late) ::kill(pid, SIGKILL);
  }
  ForkedResult result = answer.result();
  result.late = late;
  co_return result;
}

void ForkedCalls::stop() {
  stopped_ = true;
  for (const auto& [pid, stream] : running_) {
    ::kill(pid, SIGKILL);
    boost::system::error_code ignored;
    if (stream != nullptr) stream->close(ignored);
  }
}

}  // namespace drun::agent
