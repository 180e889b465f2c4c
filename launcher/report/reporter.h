// Interface for the launcher's messages to the user. Implemented by the cli's printer, and by a recorder in tests.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <string>

#include "base/error.h"
#include "launcher/report/job_report.h"

namespace drun::launcher {

class Reporter {
 public:
  virtual ~Reporter() = default;
  virtual void note(const std::string& text) = 0;  // something that the user did not request but should know
  virtual void warning(const std::string& text) = 0;
  virtual void error(const Error& error) = 0;
  // Called once, at the end of the job, with the first failure, if there is one, and the job as data.
  virtual void job_over(const JobReport& report) = 0;

  // A line that shows the progress of the start, redrawn in place; "" removes it, and so does any other text.
  // status_width() is the maximum number of columns; 0: there is no terminal to draw on.
  virtual std::size_t status_width() const { return 0; }
  virtual void status(const std::string& /*line*/) {}

  // While workers write, the text goes through their writer, so that a reader of stderr that does not read can't block
  // the I/O thread, and lines don't mix. An empty sink: straight to stderr again.
  using Sink = std::function<void(const std::string& text)>;
  void write_through(Sink sink) { sink_ = std::move(sink); }
  // Messages may be written by another thread. Waits until those before this call are, at most for `limit`; false if
  // they are not. Any thread may call it.
  virtual bool wait_written(std::chrono::milliseconds /*limit*/) { return true; }
  // Before an end of the process that calls no destructors: waits for messages and the log, at most for `limit` each.
  virtual void last_words(std::chrono::milliseconds limit) { wait_written(limit); }
  // The workers' last line on stderr has no end: the next text begins a new line.
  virtual void line_is_open() {}

 protected:
  Sink sink_;
};

}  // namespace drun::launcher
