// Findings from connecting to hosts: hosts that can't be reached, and slow logins. Pure.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "check/finding.h"
#include "launcher/connect/typed_login.h"
#include "launcher/report/progress.h"

namespace drun::check {

// "host-unreachable": a failure, with the text of the error. A negative `host` is left out.
Finding unreachable_finding(int host, const Error& error);

struct ConnectTimes {
  std::string name;
  launcher::TypedLogin login;
  launcher::Progress::Times phases;  // as returned by connect_hosts()
};

// "ssh-slow": hosts whose login takes at least 2 s and at least three times the median, with the phase that takes
// longest. The delivery of the agent does not count, because it happens only once.
std::vector<Finding> connect_findings(const std::vector<ConnectTimes>& hosts);

}  // namespace drun::check
