// Finds what earlier jobs left on hosts, and removes it if the order says so: asks all agents at once. `drun clean`
// prints the answers.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "control/messages.h"
#include "launcher/connect/connect.h"
#include "launcher/report/reporter.h"

namespace drun::launcher {

struct CleanOptions {
  std::vector<Host> hosts;  // after add_slots()
  ConnectOptions connect;
  control::Clean order;
};

struct CleanedHost {
  std::string name;
  control::Cleaned found;
};

struct CleanResult {
  std::vector<CleanedHost> hosts;  // hosts that answered, in the order of the list
  std::vector<Error> errors;       // one per host that did not answer
};

// Blocks; runs an io_context of its own on the calling thread. A host that can't be reached does not keep the others
// from being cleaned.
CleanResult clean_hosts(CleanOptions options, Reporter& reporter);

}  // namespace drun::launcher
