// The first failure of a job as people read it: one error line, then a box with what is known. The same failure of
// several ranks is told once. Pure.
#pragma once

#include <cstddef>
#include <string>

#include "launcher/report/job_report.h"

namespace drun::cli {

struct BoxStyle {
  bool color = false;
  bool utf8 = false;        // else ASCII
  std::size_t columns = 0;  // of the terminal, behind which lines are wrapped; 0: it is none, and nothing is wrapped
};

// "" if the job had no failure.
std::string format_failure(const launcher::JobReport& report, const BoxStyle& style);

}  // namespace drun::cli
