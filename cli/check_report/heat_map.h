// Matrices of `drun check` as drawings. Pure.
#pragma once

#include <string>
#include <vector>

#include "cli/check_report/figures.h"

namespace drun::cli {

inline constexpr int kFiguresTo = 16;  // hosts

struct HeatMap {
  const Matrix* matrix = nullptr;
  std::vector<std::string> names;
  std::string label;  // for those who don't see it
  Heat (*heat)(const Matrix&, int, int) = nullptr;
  Unit unit;
  bool symmetric = false;  // titles say "between a and b"
};

// An <svg>. One <rect class='c ...'> for each directed pair that was measured or that failed. To kFiguresTo hosts with
// figures, beyond that with marks in place of them, so that colour is never the only sign.
std::string heat_map_svg(const HeatMap& map);

// The words, colours and marks that occur, an <ul>. "faster", "slower".
std::string heat_legend(const Matrix& matrix, Heat (*heat)(const Matrix&, int, int), const char* better,
                        const char* worse);

// The name of a CSS class.
const char* heat_class(Heat heat);

}  // namespace drun::cli
