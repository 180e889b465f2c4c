// What `drun clean` prints. Pure.
#pragma once

#include <cstddef>
#include <string>

#include "launcher/run/clean.h"

namespace drun::cli {

// "41s", "12m", "3h05m", "2d04h".
std::string age_text(std::uint64_t seconds);
// Per host: what is left or was ended, then what is running; of directories a line per job. `width`: columns to cut
// command lines to; 0 = don't.
std::string clean_table(const launcher::CleanResult& result, std::size_t width);
std::string clean_json(const launcher::CleanResult& result);
// Is there something that was not ended?
bool anything_left(const launcher::CleanResult& result);

}  // namespace drun::cli
