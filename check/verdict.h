// The verdicts of a check, on each host and on the cluster, from its findings. Pure.
#pragma once

#include "check/check_result.h"

namespace drun::check {

// Sorts the findings and sets all verdicts. A network error becomes a finding if no other failure says why a job would
// not start. May be called again after findings have been added or changed.
void set_verdicts(CheckResult& result);

// drun's exit status for a result.
int check_status(const CheckResult& result, bool strict);

}  // namespace drun::check
