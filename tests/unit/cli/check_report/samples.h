// Made-up results of `drun check`, the same in every run.
#pragma once

#include <string>
#include <vector>

#include "check/check_result.h"

namespace drun::cli::samples {

// All links are alike within a few percent: 10 Gb/s and 84 us.
check::CheckResult healthy(int n_hosts);
// The links of the third host move 9.4 Mb/s on a network of 1 Gb/s. At least 3 hosts.
check::CheckResult one_slow(int n_hosts);
// The second host can't be reached.
check::CheckResult one_unreachable(int n_hosts);
check::CheckResult nothing_reachable(int n_hosts);
// Two networks, a slow host, a pair that is filtered, a lossy one, and not all pairs measured beyond 32 hosts.
check::CheckResult troubled(int n_hosts);
// Names, texts and commands that a page or a terminal must not interpret.
check::CheckResult hostile();

// Two hosts of 8 ranks, with one direction slower than the other, and a prediction for 14 GB. The ring of both
// directions at once moved more than the directions did alone, so the prediction's own rate is in no matrix.
check::CheckResult uneven_pair();

// The names that the program check-page accepts: "healthy", "one-slow", ... by_name() returns healthy() for any other.
std::vector<std::string> names();
check::CheckResult by_name(const std::string& name, int n_hosts);

}  // namespace drun::cli::samples
