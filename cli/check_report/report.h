// The reports of `drun check`. Pure.
#pragma once

#include <cstddef>
#include <string>

#include "check/check_result.h"

namespace drun::cli {

struct TextStyle {
  bool color = false;
  std::size_t width = 80;  // columns that prose is wrapped to; tables and commands may be wider
};

// For a terminal.
std::string check_text(const check::CheckResult& result, const TextStyle& style);

// JSON, for --json. docs/check.md describes each key.
std::string check_json(const check::CheckResult& result);

// One self-contained page: no network, no scripts; styles and drawings are inline.
std::string check_html(const check::CheckResult& result);

}  // namespace drun::cli
