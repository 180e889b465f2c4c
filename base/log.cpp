#include "base/log.h"

#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

namespace drun::log {

namespace {
std::shared_ptr<spdlog::logger>& logger() {
  static std::shared_ptr<spdlog::logger> instance;
  return instance;
}
}  // namespace

Result<void> start(Level level, const std::string& file) {
  if (level == Level::kOff) return {};
  try {
    spdlog::sink_ptr sink;
    if (file.empty()) {
      sink = std::make_shared<spdlog::sinks::stderr_sink_mt>();
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
  if (logger()) logger()->info("{}", text);
}

void debug(const std::string& text) {
  if (logger()) logger()->debug("{}", text);
}

}  // namespace drun::log
