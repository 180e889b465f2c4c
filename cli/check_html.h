// The report of `drun check` as one page that needs nothing else: no network, no scripts; style and drawings are in it.
// Pure.
#pragma once

#include <string>

#include "check/check_result.h"

namespace drun::cli {

std::string check_html(const check::CheckResult& result);

}  // namespace drun::cli
