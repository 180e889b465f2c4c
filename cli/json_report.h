// A job as data, for --report. docs/report.md describes each field.
#pragma once

#include <string>

#include "base/error.h"
#include "launcher/report/job_report.h"

namespace drun::cli {

std::string to_json(const launcher::JobReport& report);
// Atomic: written beside `path`, then renamed.
Result<void> write_report(const launcher::JobReport& report, const std::string& path);

}  // namespace drun::cli
