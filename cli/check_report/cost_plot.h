// What an allreduce will take, against its size, as a drawing. Pure.
#pragma once

#include <string>

#include "check/cost_model.h"

namespace drun::cli {

// An <svg> with two logarithmic axes, its legend, and what its lines are in words. "" = the prediction has no curve.
// `n_ranks`: the most that a host has.
std::string cost_plot_markup(const check::Prediction& prediction, int n_ranks);

}  // namespace drun::cli
