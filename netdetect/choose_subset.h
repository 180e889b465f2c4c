// Chooses for as many hosts as possible if choose() fails for all of them. Pure.
#pragma once

#include <optional>
#include <vector>

#include "base/error.h"
#include "netdetect/choose.h"

namespace drun::netdetect {

struct PartialChoice {
  // Indexed by all hosts. A host that is left out has a HostChoice without interface and address; its entries of
  // `reach` say if any address was reached.
  Choice choice;
  std::vector<int> left_out;   // ascending; empty: `choice` is what choose() returned
  std::optional<Error> error;  // of choose() for all hosts that are not gone; nullopt: none
};

// Leaves out `gone` (lost, or without an agent) and then, until choose() succeeds, the hosts that it finds faulty. If
// fewer than two hosts remain, none gets a choice, unless `hosts` has only one: it gets the result of choose().
PartialChoice choose_subset(const std::vector<HostInterfaces>& hosts, const Candidates& candidates,
                            const std::vector<AttemptResult>& results, const std::vector<int>& gone = {});

}  // namespace drun::netdetect
