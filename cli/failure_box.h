// Prints the first failure of a job: one error line, then a box with the details. A failure that several ranks had is
// printed once. Pure.
#pragma once

#include <cstddef>
#include <string>

#include "launcher/report/job_report.h"

namespace drun::cli {

struct BoxStyle {
  bool color = false;
  bool utf8 = false;        // else ASCII
  std::size_t columns = 0;  // of the terminal, at which lines are wrapped; 0: not a terminal, no wrapping
};

// "" if the job had no failure.
std::string format_failure(const launcher::JobReport& report, const BoxStyle& style);

}  // namespace drun::cli
