// The same failure of several ranks, so that it is told once: an exception that all ranks run into. Pure.
#pragma once

#include <string>
#include <vector>

#include "launcher/report/first_failure.h"

namespace drun::launcher {

// The end and all that is known of it are equal but for what is each rank's own: its rank, local rank, pid, host, and
// addresses in memory. Of the last lines those count that telling_lines() has. Last calls are not compared. Without a
// word of the ranks' own it is not known to be the same.
bool is_same_failure(const JobFailure& a, const JobFailure& b);

// From the first traceback of Python on, if there is one: before it every rank says something else. Else all.
std::vector<std::string> telling_lines(const JobFailure& failure);

// All lines are equal in that sense.
bool has_same_lines(const JobFailure& a, const JobFailure& b);

// An uncaught exception of Python that is the same in that sense, whatever ended `b`: drun may have been faster than
// its interpreter's end.
bool wrote_same_traceback(const JobFailure& a, const JobFailure& b);

// Indices of failures that are the same, in the order in which they came first.
std::vector<std::vector<std::size_t>> same_failures(const std::vector<JobFailure>& failures);

}  // namespace drun::launcher
