// `drun [run]`, with --dry-run and the small printing options.
#pragma once

#include "cli/options.h"
#include "cli/printer.h"

namespace drun::cli {

// Returns the exit status.
int command_run(Options options, Printer& printer);

}  // namespace drun::cli
