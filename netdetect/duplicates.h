// Addresses that several hosts have. Pure.
#pragma once

#include <vector>

#include "netdetect/candidates.h"

namespace drun::netdetect {

// True for interfaces that a machine creates for itself. Their addresses do not matter to other hosts.
bool is_internal(const Interface& nic);

struct SharedAddress {
  struct Owner {
    int host = 0;
    const Interface* nic = nullptr;  // points into `hosts` of find_shared_addresses()
  };
  Address address;
  std::vector<Owner> owners;  // two or more, by host
  // True if another host has an unshared address in the same network: packets to the shared address then reach one of
  // the owners by chance. Otherwise each host has that network for itself, like that of docker0.
  bool in_one_network = false;
};

// Finds addresses that several hosts have on interfaces that are up, except loopback and link-local addresses. Hosts
// of one network namespace count as one owner. Skips the hosts in `gone`.
std::vector<SharedAddress> find_shared_addresses(const std::vector<HostInterfaces>& hosts,
                                                 const std::vector<int>& namespaces, const std::vector<int>& gone = {});

}  // namespace drun::netdetect
