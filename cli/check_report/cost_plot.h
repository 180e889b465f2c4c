// Draws the predicted time of an allreduce against its size. Pure.
#pragma once

#include <string>

#include "check/cost_model.h"

namespace drun::cli {

// An <svg> with two logarithmic axes, its legend and a caption. "" = the prediction has no curve. `n_ranks`: the
// maximum per host.
std::string cost_plot_markup(const check::Prediction& prediction, int n_ranks);

}  // namespace drun::cli
