// The first failure of a job as people read it: one error line, then a box with what is known. Pure.
#pragma once

#include <string>

#include "launcher/job_report.h"

namespace drun::cli {

struct BoxStyle {
  bool color = false;
  bool utf8 = false;  // else ASCII
};

// "" if the job had no failure.
std::string format_failure(const launcher::JobReport& report, const BoxStyle& style);

}  // namespace drun::cli
