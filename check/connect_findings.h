// What the way to the hosts says about them: hosts that can't be reached, and logins that take long. Pure.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "check/finding.h"
#include "launcher/report/progress.h"

namespace drun::check {

// "host-unreachable": a failure, with the error's own words.
Finding unreachable_finding(int host, const Error& error);

struct ConnectTimes {
  std::string name;
  launcher::Progress::Times phases;  // as connect_hosts() has them
};

// "ssh-slow": hosts whose login takes more than 2 s and three times as long as the typical one, with the phase that
// takes the time. How long the agent travelled does not count: it does so once.
std::vector<Finding> connect_findings(const std::vector<ConnectTimes>& hosts);

}  // namespace drun::check
