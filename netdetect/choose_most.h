// The choice for as many hosts as possible, where choose() gives none for all of them. Pure.
#pragma once

#include <optional>
#include <vector>

#include "base/error.h"
#include "netdetect/choose.h"

namespace drun::netdetect {

struct PartialChoice {
  // By index of all hosts. Those that are left out have a HostChoice without interface and address; `reach` has for
  // them whether any address was reached.
  Choice choice;
  std::vector<int> left_out;   // ascending; empty: `choice` is what choose() returned
  std::optional<Error> error;  // of choose() for all hosts that are not gone; nothing: there was none
};

// Leaves out `gone` (lost, or without an agent) and then, until choose() succeeds, the hosts that it blames. Fewer than
// two hosts that are left get nothing, but a single one that is asked for alone: it gets what choose() gives it.
PartialChoice choose_most(const std::vector<HostInterfaces>& hosts, const Candidates& candidates,
                          const std::vector<AttemptResult>& results, const std::vector<int>& gone = {});

}  // namespace drun::netdetect
