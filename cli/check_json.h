// The result of `drun check` as data, for --json. docs/check.md describes each key. Pure.
#pragma once

#include <string>

#include "check/check_result.h"

namespace drun::cli {

std::string check_json(const check::CheckResult& result);

}  // namespace drun::cli
