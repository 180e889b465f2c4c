// The report of `drun check` for a terminal. Pure.
#pragma once

#include <cstddef>
#include <string>

#include "check/check_result.h"

namespace drun::cli {

struct TextStyle {
  bool color = false;
  std::size_t width = 80;  // columns that prose is wrapped to; tables and commands may be wider
};

std::string check_text(const check::CheckResult& result, const TextStyle& style);

}  // namespace drun::cli
