// What an allreduce will take, against its size, as a drawing. Pure.
#pragma once

#include <string>

#include "netdetect/cost_model.h"

namespace drun::cli {

// An <svg> with two logarithmic axes, and its legend. "" = the prediction has no curve.
std::string cost_plot_markup(const netdetect::Prediction& prediction);

}  // namespace drun::cli
