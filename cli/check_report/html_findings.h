// The findings of `drun check` on its page. Pure.
#pragma once

#include <string>

#include "check/check_result.h"

namespace drun::cli {

// Sections of the page. Findings to fix come first on the page; notes come last, folded ("" = there are none),
// followed by the meanings of the codes that occur ("" = none has a section in docs/check.md).
std::string findings_section(const check::CheckResult& result);
std::string notes_section(const check::CheckResult& result);
std::string codes_section(const check::CheckResult& result);

}  // namespace drun::cli
