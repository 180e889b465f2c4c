// `drun run --check`: the hosts of a job are checked before anything is started on them.
#pragma once

#include "check/check_result.h"
#include "launcher/run/job.h"

namespace drun::check {

// Returns the function for JobOptions::examine_hosts. Findings go to the job's reporter: failures as errors, which
// keep the job from running.
launcher::ExamineHosts examine_before(const launcher::JobOptions& job, CheckDepth depth);

}  // namespace drun::check
