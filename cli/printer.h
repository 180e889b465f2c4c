// Messages to the user: errors with cause, context and hint, warnings, notes. stderr only; stdout belongs to the
// workers.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "base/log.h"
#include "launcher/output/background_writer.h"
#include "launcher/report/reporter.h"

namespace drun::cli {

// "drun: error: SUBJECT: CAUSE", a line per context, "  hint: HINT". With `color` the words error and hint are
// highlighted. These functions clean what they are given: parts of it come from other hosts and programs.
std::string format_error(const Error& error, bool color);
// "drun: note: TEXT", "drun: warning: TEXT"; a text may have several lines.
std::string format_note(const std::string& text);
std::string format_warning(const std::string& text, bool color);

class Printer : public launcher::Reporter {
 public:
  Printer();
  ~Printer() override;
  Printer(const Printer&) = delete;
  Printer& operator=(const Printer&) = delete;
  void note(const std::string& text) override;
  void warning(const std::string& text) override;
  void error(const Error& error) override;
  void job_over(const launcher::JobReport& report) override;
  // The file for the job's JSON report; "" = none.
  void set_report_file(std::string path) { report_file_ = std::move(path); }
  std::size_t status_width() const override;
  void status(const std::string& line) override;
  void line_is_open() override { line_is_open_ = true; }
  bool wait_written(std::chrono::milliseconds limit) override;
  void last_words(std::chrono::milliseconds limit) override;
  // Returns when all messages are written: before text on stdout, which may be the same terminal. Blocks.
  void flush();
  // Starts the log: in `file`, or with "" on stderr, in its place among the messages. An error if the file can't be
  // opened.
  Result<void> start_log(log::Level level, const std::string& file);
  // Logs on the same terminal would garble the status line.
  void disable_status() { status_allowed_ = false; }

 private:
  void write(const std::string& text);
  launcher::BackgroundWriter& messages();

  bool color_;
  bool utf8_;
  std::string report_file_;
  bool status_allowed_;
  bool line_is_open_ = false;
  bool drawn_ = false;  // a status line is on the terminal
  // From the first message on; its destructor writes the last.
  std::unique_ptr<launcher::BackgroundWriter> messages_;
  std::unique_ptr<launcher::BackgroundWriter> log_file_;  // with --log-file
  std::string log_path_;
  bool log_is_cut_ = false;  // more lines waited than may
};

}  // namespace drun::cli
