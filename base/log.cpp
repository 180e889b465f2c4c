#include "base/log.h"

#include <fcntl.h>
#include <spdlog/sinks/base_sink.h>
#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <cerrno>
#include <mutex>
#include <utility>

#include "base/clean_text.h"
#include "base/fd.h"

namespace drun::log {

namespace {
std::shared_ptr<spdlog::logger>& logger() {
  static std::shared_ptr<spdlog::logger> instance;
  return instance;
}

Write& instead_of_stderr() {
  static Write write;
  return write;
}

class StderrSink : public spdlog::sinks::base_sink<std::mutex> {
 public:
  explicit StderrSink(Write to_stderr) : to_stderr_(std::move(to_stderr)) {}

 private:
  void sink_it_(const spdlog::details::log_msg& message) override {
    spdlog::memory_buf_t line;
    formatter_->format(message, line);
    const std::string text(line.data(), line.size());
    if (const auto& write = instead_of_stderr()) {
      write(text);
    } else if (to_stderr_) {
      to_stderr_(text);
    } else {
      write_all(STDERR_FILENO, text);
    }
  }
  void flush_() override {}

  Write to_stderr_;
};

}  // namespace

void write_through(Write write) { instead_of_stderr() = std::move(write); }

Result<void> start(Level level, const std::string& file, Write to_stderr) {
  if (level == Level::kOff) return {};
  Fd opened;  // until spdlog has opened it, too: the reader of a pipe sees no end before that
  if (!file.empty()) {
    opened.reset(::open(file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666));
    if (!opened) return fail(Errc::kUsage, "--log-file", errno_error(errno, file).cause);  // spdlog makes folders
  }
  try {
    spdlog::sink_ptr sink;
    if (file.empty()) {
      sink = std::make_shared<StderrSink>(std::move(to_stderr));
    } else {
      sink = std::make_shared<spdlog::sinks::basic_file_sink_mt>(file);
    }
    logger() = std::make_shared<spdlog::logger>("drun", std::move(sink));
  } catch (const spdlog::spdlog_ex& e) {
    return fail(Errc::kUsage, "--log-file " + file, e.what());
  }
  logger()->set_pattern("%H:%M:%S.%e drun %L %v");
  logger()->set_level(level == Level::kDebug ? spdlog::level::debug : spdlog::level::info);
  logger()->flush_on(spdlog::level::debug);
  return {};
}

void info(const std::string& text) {
  if (logger()) logger()->info("{}", clean_line(text));
}

void debug(const std::string& text) {
  if (logger()) logger()->debug("{}", clean_line(text));
}

}  // namespace drun::log
