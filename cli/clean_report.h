// The output of `drun clean`. Pure.
#pragma once

#include <cstddef>
#include <string>

#include "launcher/run/clean.h"

namespace drun::cli {

// "41s", "12m", "3h05m", "2d04h".
std::string age_text(std::uint64_t seconds);
// Lists per host first what is left or was ended, then what is running; directories take one line per job. `width`:
// columns to cut command lines to; 0 = don't cut.
std::string clean_table(const launcher::CleanResult& result, std::size_t width);
std::string clean_json(const launcher::CleanResult& result);
// True if something was left that was not ended.
bool anything_left(const launcher::CleanResult& result);

}  // namespace drun::cli
