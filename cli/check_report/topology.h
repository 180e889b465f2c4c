// The hosts of `drun check` and their links as a drawing. Pure.
#pragma once

#include <string>

#include "cli/check_report/figures.h"

namespace drun::cli {

// An <svg> and the legend below it. Hosts stand around a circle, those of one network side by side; a link is drawn
// once for both directions, as the worse of them. "" = there is nothing to draw.
std::string topology_markup(const check::CheckResult& result, const Figures& figures);

}  // namespace drun::cli
