#include "agent/forked_call.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <boost/asio/buffer.hpp>
#include <cstring>
#include <new>

#include "agent/fork_child.h"
#include "base/bytes.h"
#include "base/fd.h"

namespace drun::agent {

namespace {

constexpr std::size_t kHead = sizeof(std::uint32_t);

[[noreturn]] void run_and_answer(const ForkedFunction& function, const SharedStep& last_step, const Fd& out) {
  // A child that hangs must not hold open what the agent closes: the channel to drun and the workers' pipes.
  const int null = ::open("/dev/null", O_RDWR);
  for (const int standard : {STDIN_FILENO, STDOUT_FILENO}) {
    if (null < 0 || ::dup2(null, standard) < 0) ::_exit(1);
  }
  close_others(STDERR_FILENO + 1, out.get());
  const ReportStep report = [&last_step](const std::string& step) { last_step.set(step); };
  const bool written = write_all(out.get(), ForkedAnswer::encode(function(report))).has_value();
  ::_exit(written ? 0 : 1);
}

}  // namespace

// The child writes into the text that is not shown, so that what the agent reads is whole.
struct SharedStep::Page {
  std::atomic<int> shown;
  std::array<std::array<char, 4096>, 2> texts;
};

SharedStep::SharedStep() {
  void* memory = ::mmap(nullptr, sizeof(Page), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  page_ = memory == MAP_FAILED ? nullptr : new (memory) Page();
}

SharedStep::~SharedStep() {
  if (page_ != nullptr) ::munmap(page_, sizeof(Page));
}

void SharedStep::set(std::string_view step) const {
  if (page_ == nullptr) return;
  const int hidden = 1 - page_->shown.load(std::memory_order_relaxed);
  auto& text = page_->texts[static_cast<std::size_t>(hidden)];
  const std::size_t n = std::min(step.size(), text.size() - 1);
  std::memcpy(text.data(), step.data(), n);
  text[n] = '\0';
  page_->shown.store(hidden, std::memory_order_release);
}

std::string SharedStep::get() const {
  if (page_ == nullptr) return "";
  const auto& text = page_->texts[static_cast<std::size_t>(page_->shown.load(std::memory_order_acquire))];
  return {text.data(), ::strnlen(text.data(), text.size())};
}

std::string ForkedAnswer::encode(std::string_view value) {
  ByteWriter out;
  out.str(value);
  return out.take();
}

void ForkedAnswer::push(std::string_view bytes) {
  bytes_ += bytes;
  if (bytes_.size() < kHead || value_) return;
  const std::size_t n = ByteReader(bytes_).u32();
  if (bytes_.size() - kHead >= n) value_ = bytes_.substr(kHead, n);
}

Task<ForkedResult> ForkedCalls::call(ForkedFunction function, Deadline deadline) {
  ForkedResult result;
  if (stopped_) {
    result.late = true;
    co_return result;
  }
  auto pipe = make_pipe();
  if (!pipe) {
    result.problem = pipe.error().message();
    co_return result;
  }
  const SharedStep last_step;
  const pid_t pid = fork_child();
  if (pid < 0) {
    result.problem = errno_error(errno, "fork").message();
    co_return result;
  }
  if (pid == 0) run_and_answer(function, last_step, pipe->write);
  pipe->write.reset();
  set_nonblocking(pipe->read.get(), true);
  Stream stream(io_, pipe->read.release());
  running_[pid] = &stream;
  std::string chunk(16u << 10, '\0');
  ForkedAnswer answer;
  {
    const std::function<void()> cancel = [&stream] {
      boost::system::error_code ignored;
      stream.close(ignored);
    };
    DeadlineGuard guard(io_.get_executor(), deadline, cancel);
    while (!answer.value()) {
      const auto buffer = asio::buffer(chunk);
      const auto [ec, n] = co_await stream.async_read_some(buffer, as_result);
      if (ec) break;
      answer.push(std::string_view(chunk).substr(0, n));
    }
    result.late = !answer.value() && (guard.fired() || stopped_);
  }
  if (const auto running = running_.find(pid); running != running_.end()) {
    running->second = nullptr;
    if (result.late) ::kill(pid, SIGKILL);
  }
  result.value = answer.value();
  result.step = last_step.get();
  if (!result.value && !result.late) result.problem = "a child process ended early";
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
