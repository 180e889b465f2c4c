// Made-up results of `drun check`, the same in every run.
#pragma once

#include <string>
#include <vector>

#include "check/check_result.h"

namespace drun::cli::samples {

// All links alike, within a few per cent: 10 Gb/s and 84 us.
check::CheckResult healthy(int n_hosts);
// The links of the third host move 9.4 Mb/s on a network of 1 Gb/s. At least 3 hosts.
check::CheckResult one_slow(int n_hosts);
// The second host can't be reached.
check::CheckResult one_unreachable(int n_hosts);
check::CheckResult nothing_reachable(int n_hosts);
// Two networks, a slow host, a pair that is filtered, a lossy one, and not all pairs measured beyond 32 hosts.
check::CheckResult troubled(int n_hosts);
// Names, words and commands that a page or a terminal must not take for its own.
check::CheckResult hostile();

// Two hosts of 8 ranks, of which one direction is slower than the other, and a prediction for 14 GB. The ring of both
// at once moved more than they did alone, so the prediction's own rate is in no matrix.
check::CheckResult uneven_pair();

// By name, for the program that writes pages: "healthy", "one-slow", ...; nothing for another name.
std::vector<std::string> names();
check::CheckResult by_name(const std::string& name, int n_hosts);

}  // namespace drun::cli::samples
