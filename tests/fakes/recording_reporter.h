// Keeps what the user would have read.
#pragma once

#include <string>
#include <vector>

#include "launcher/report/reporter.h"

namespace drun::testing {

class RecordingReporter : public launcher::Reporter {
 public:
  void note(const std::string& text) override { notes.push_back(text); }
  void warning(const std::string& text) override { warnings.push_back(text); }
  void error(const Error& error) override { errors.push_back(error.message()); }
  void job_over(const launcher::JobReport& report) override { reports.push_back(report); }

  std::vector<std::string> notes, warnings, errors;
  std::vector<launcher::JobReport> reports;
};

}  // namespace drun::testing
