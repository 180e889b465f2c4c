#include "base/log.h"

#include <spdlog/sinks/base_sink.h>
#include <spdlog/spdlog.h>

#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "base/clean_text.h"

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

class WriterSink : public spdlog::sinks::base_sink<std::mutex> {
 public:
  WriterSink(Write write, Place place) : write_(std::move(write)), place_(place) {}

 private:
  void sink_it_(const spdlog::details::log_msg& message) override {
    spdlog::memory_buf_t line;
    formatter_->format(message, line);
    const auto& instead = instead_of_stderr();
    (place_ == Place::kStderr && instead ? instead : write_)(std::string(line.data(), line.size()));
  }
  void flush_() override {}

  Write write_;
  Place place_;
};

}  // namespace

void write_through(Write write) { instead_of_stderr() = std::move(write); }

void start(Level level, Write write, Place place) {
  if (level == Level::kOff) return;
  logger() = std::make_shared<spdlog::logger>("drun", std::make_shared<WriterSink>(std::move(write), place));
  logger()->set_pattern("%H:%M:%S.%e drun %L %v");
  logger()->set_level(level == Level::kDebug ? spdlog::level::debug : spdlog::level::info);
}

void stop() { logger().reset(); }

void info(const std::string& text) {
  if (logger()) logger()->info("{}", clean_line(text));
}

void debug(const std::string& text) {
  if (logger()) logger()->debug("{}", clean_line(text));
}

}  // namespace drun::log
