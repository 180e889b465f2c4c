// Recognizes the same failure of several ranks, such as an exception that all ranks run into, so that it is reported
// once. Pure.
#pragma once

#include <string>
#include <vector>

#include "launcher/report/first_failure.h"

namespace drun::launcher {

// True if the ends of two ranks, and all that is known about them, are equal except for what is specific to a rank: its
// rank, local rank, pid, host, and memory addresses. Compares only telling_lines() of the last lines, and no last
// calls. False if the rank reported nothing itself, because then the failures may differ.
bool is_same_failure(const JobFailure& a, const JobFailure& b);

// The lines from the first Python traceback on, if there is one, because the lines before it differ between ranks.
// Otherwise all lines.
std::vector<std::string> telling_lines(const JobFailure& failure);

// True if all last lines are equal in that sense.
bool has_same_lines(const JobFailure& a, const JobFailure& b);

// True if both have an uncaught Python exception that is the same in that sense, whatever ended `b`: drun may have
// ended it before its interpreter exited.
bool wrote_same_traceback(const JobFailure& a, const JobFailure& b);

// Indices of equal failures, grouped, in the order of first appearance.
std::vector<std::vector<std::size_t>> same_failures(const std::vector<JobFailure>& failures);

}  // namespace drun::launcher
