// The figures of a report: all its rates are in one unit, and all its round trips, so that they can be compared without
// a look at their units. Pure.
#pragma once

#include <string>

#include "cli/check_view.h"
#include "netdetect/units.h"

namespace drun::cli {

// The figures that a report shows in more than one place.
struct Figures {
  explicit Figures(const launcher::CheckResult& result);

  Matrix bandwidth, latency;
  // Nothing was measured: by what the interfaces' drivers say.
  netdetect::Unit rate, time, login;
};

// As netdetect::prediction_text(); "" = nothing was predicted. Its figures are those of the matrix.
std::string prediction_sentence(const launcher::CheckResult& result, const Figures& figures);

}  // namespace drun::cli
