// Collects what an agent reports about its host in the hello.
#pragma once

#include "agent/cgroup.h"
#include "control/messages.h"

namespace drun::agent {

control::Hello take_inventory(const CgroupFiles& cgroup_files);

}  // namespace drun::agent
