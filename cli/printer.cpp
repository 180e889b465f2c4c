#include "cli/printer.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <utility>

#include "base/clean_text.h"
#include "base/terminal.h"
#include "base/text.h"
#include "cli/failure_box.h"
#include "cli/json_report.h"

namespace drun::cli {

namespace {

std::string paint(const char* code, const std::string& text, bool color) {
  return color ? std::string("\033[") + code + "m" + text + "\033[0m" : text;
}

std::string indented(const std::string& text) {
  std::string out;
  for (const auto line : split(text, '\n')) {
    out += "  ";
    out += line;
    out += '\n';
  }
  return out;
}

// Follows setlocale: the first variable that is set decides.
bool locale_is_utf8() {
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    const char* value = std::getenv(name);
    if (value == nullptr || *value == '\0') continue;
    const std::string low = lower(value);
    return low.find("utf-8") != std::string::npos || low.find("utf8") != std::string::npos;
  }
  return false;
}

constexpr const char* kErase = "\r\033[K";

std::size_t terminal_columns() {
  return static_cast<std::size_t>(terminal_size(STDERR_FILENO).value_or(TerminalSize()).columns);
}

constexpr std::chrono::milliseconds kNoTime{0};
constexpr std::chrono::milliseconds kLogTime{2000};  // for its last lines
constexpr std::size_t kMaxLogWaiting = 64u << 20;    // bytes; lines above are dropped

// The progress line is not drawn on a stopped terminal (Ctrl-S), where it would be old when it is shown.
bool can_write_now() {
  pollfd p{STDERR_FILENO, POLLOUT, 0};
  return ::poll(&p, 1, 0) == 1 && (p.revents & POLLOUT) != 0;
}

}  // namespace

std::string format_error(const Error& error, bool color) {
  std::string out = "drun: " + paint("1;31", "error", color) + ": " + clean_line(error.message()) + " [" +
                    std::string(id_of(error)) + "]\n";
  if (!error.context.empty()) out += indented(clean_text(error.context));
  if (!error.hint.empty()) out += "  " + paint("1;36", "hint", color) + ": " + clean_line(error.hint) + "\n";
  return out;
}

std::string format_note(const std::string& text) { return "drun: note: " + clean_text(text) + "\n"; }

std::string format_warning(const std::string& text, bool color) {
  return "drun: " + paint("1;33", "warning", color) + ": " + clean_text(text) + "\n";
}

Printer::Printer() {
  const char* terminal = std::getenv("TERM");
  const bool on_terminal = ::isatty(STDERR_FILENO) == 1;
  color_ = wants_color(STDERR_FILENO);
  utf8_ = locale_is_utf8();
  status_allowed_ = on_terminal && terminal != nullptr && *terminal != '\0' && std::string(terminal) != "dumb";
}

std::size_t Printer::status_width() const {
  if (!status_allowed_) return 0;
  const std::size_t columns = terminal_columns();
  const std::size_t own = 7;  // "drun: " and the last column, where some terminals wrap
  return columns > own + 10 ? columns - own : 0;
}

Printer::~Printer() {
  log::stop();
  if (!log_file_) return;
  auto closed = log_file_->close(kLogTime);
  if (closed && log_is_cut_) closed = fail(Errc::kTimeout, "", "its file system is too slow; lines are missing");
  if (!closed) warning("--log-file: " + log_path_ + ": " + closed.error().cause);
}

launcher::BackgroundWriter& Printer::messages() {
  if (messages_ == nullptr) messages_ = std::make_unique<launcher::BackgroundWriter>(STDERR_FILENO);
  return *messages_;
}

bool Printer::wait_written(std::chrono::milliseconds limit) { return messages_ == nullptr || messages_->wait(limit); }

void Printer::last_words(std::chrono::milliseconds limit) {
  if (log_file_) log_file_->wait(limit);
  wait_written(limit);
}

void Printer::flush() {
  while (!wait_written(std::chrono::seconds(1))) continue;
}

Result<void> Printer::start_log(log::Level level, const std::string& file) {
  if (level == log::Level::kOff) return {};
  if (file.empty()) {
    log::start(level, [this](const std::string& text) { messages().push(text); });
    return {};
  }
  Fd opened(::open(file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666));
  if (!opened) return fail(Errc::kUsage, "--log-file", errno_error(errno, file).cause);
  log_file_ = std::make_unique<launcher::BackgroundWriter>(std::move(opened), kMaxLogWaiting);
  log_path_ = file;
  const auto write = [this](const std::string& text) { log_is_cut_ = !log_file_->push(text) || log_is_cut_; };
  log::start(level, write, log::Place::kFile);
  return {};
}

void Printer::status(const std::string& line) {
  if (line.empty()) {
    if (drawn_) messages().push(kErase);
    drawn_ = false;
    return;
  }
  // The terminal belongs to the workers once they write. A drun in the background doesn't draw either.
  const pid_t foreground = ::tcgetpgrp(STDERR_FILENO);
  const bool in_background = foreground > 0 && foreground != ::getpgrp();
  if (!status_allowed_ || sink_ || in_background || !can_write_now() || !wait_written(kNoTime)) return;
  messages().push(std::string("\r") + "drun: " + clean_line(line) + "\033[K");
  drawn_ = true;
}

void Printer::write(const std::string& text) {
  status("");
  if (std::exchange(line_is_open_, false)) messages().push("\n");
  if (sink_) {
    sink_(text);
  } else {
    messages().push(text);
  }
}

void Printer::note(const std::string& text) { write(format_note(text)); }

void Printer::warning(const std::string& text) { write(format_warning(text, color_)); }

void Printer::error(const Error& error) { write(format_error(error, color_)); }

void Printer::job_over(const launcher::JobReport& report) {
  BoxStyle style;
  style.color = color_;
  style.utf8 = utf8_;
  if (::isatty(STDERR_FILENO) == 1) style.columns = terminal_columns();
  if (report.failure) write(format_failure(report, style));
  if (report_file_.empty()) return;
  auto written = write_report(report, report_file_);
  if (!written) warning(written.error().message());
}

}  // namespace drun::cli
