// Draws the matrices of `drun check`. Pure.
#pragma once

#include <string>
#include <vector>

#include "cli/check_report/figures.h"

namespace drun::cli {

inline constexpr int kFiguresTo = 16;  // maximum number of hosts

struct HeatMap {
  const Matrix* matrix = nullptr;
  std::vector<std::string> names;
  std::string label;  // for screen readers
  Heat (*heat)(const Matrix&, int, int) = nullptr;
  Unit unit;
  bool symmetric = false;  // titles say "between a and b"
};

// An <svg> with one <rect class='c ...'> for each directed pair that was measured or that failed. Up to kFiguresTo
// hosts the cells hold figures, beyond that marks, so that color is never the only sign.
std::string heat_map_svg(const HeatMap& map);

// An <ul> of the labels, colors and marks that occur. `better`, `worse`: "faster", "slower".
std::string heat_legend(const Matrix& matrix, Heat (*heat)(const Matrix&, int, int), const char* better,
                        const char* worse);

// The name of a CSS class.
const char* heat_class(Heat heat);

}  // namespace drun::cli
