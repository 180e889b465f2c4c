// Draws the hosts of `drun check` and their links. Pure.
#pragma once

#include <string>

#include "cli/check_report/figures.h"

namespace drun::cli {

// An <svg> and the legend below it. Hosts stand on a circle, those of one network side by side. A link is drawn once
// for both directions, in the color of the worse one. "" = there is nothing to draw.
std::string topology_markup(const check::CheckResult& result, const Figures& figures);

}  // namespace drun::cli
