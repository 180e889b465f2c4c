// The figures of a report: all rates share one unit, as do all round trips, so that they can be compared at a glance.
// Pure.
#pragma once

#include <string>

#include "base/units.h"
#include "cli/check_report/view.h"

namespace drun::cli {

// Figures that a report shows in more than one place.
struct Figures {
  explicit Figures(const check::CheckResult& result);

  Matrix bandwidth, latency;
  // If nothing was measured, the units follow the speeds that the interfaces' drivers report.
  Unit rate, time, login;
};

// Like check::prediction_text(), with the figures of the matrix. "" = nothing was predicted.
std::string prediction_sentence(const check::CheckResult& result, const Figures& figures);

}  // namespace drun::cli
