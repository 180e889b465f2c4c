// Addresses that several hosts have. Pure.
#pragma once

#include <vector>

#include "netdetect/candidates.h"

namespace drun::netdetect {

// What a machine makes for itself: its addresses are no business of other hosts.
bool is_internal(const Interface& nic);

struct SharedAddress {
  struct Owner {
    int host = 0;
    const Interface* nic = nullptr;  // into what find_shared_addresses() was given
  };
  Address address;
  std::vector<Owner> owners;  // two or more, by host
  // Another host has an address of its own in the same network, so that packets for this one go to one of the owners
  // by chance. Else the network is one that each host has for itself, as docker0's.
  bool in_one_network = false;
};

// Of interfaces that are up; neither of loopback nor link-local. Hosts of one network namespace have an address once.
// Without the hosts in `gone`.
std::vector<SharedAddress> find_shared_addresses(const std::vector<HostInterfaces>& hosts,
                                                 const std::vector<int>& namespaces, const std::vector<int>& gone = {});

}  // namespace drun::netdetect
