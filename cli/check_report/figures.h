// The figures of a report: all its rates are in one unit, and all its round trips, so that they can be compared without
// a look at their units. Pure.
#pragma once

#include <string>

#include "base/units.h"
#include "cli/check_report/view.h"

namespace drun::cli {

// The figures that a report shows in more than one place.
struct Figures {
  explicit Figures(const check::CheckResult& result);

  Matrix bandwidth, latency;
  // Nothing was measured: by what the interfaces' drivers say.
  Unit rate, time, login;
};

// As check::prediction_text(); "" = nothing was predicted. Its figures are those of the matrix.
std::string prediction_sentence(const check::CheckResult& result, const Figures& figures);

}  // namespace drun::cli
