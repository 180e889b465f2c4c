// The findings of `drun check` on its page. Pure.
#pragma once

#include <string>

#include "check/check_result.h"

namespace drun::cli {

// Sections of the page. What should be mended stands on top of it; what is only worth knowing comes last, folded ("" =
// there is none); and last what the codes that occur mean ("" = none has a section in docs/check.md).
std::string findings_section(const check::CheckResult& result);
std::string notes_section(const check::CheckResult& result);
std::string codes_section(const check::CheckResult& result);

}  // namespace drun::cli
