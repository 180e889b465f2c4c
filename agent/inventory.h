// Collects what an agent reports about its host in the hello.
#pragma once

#include "control/messages.h"

namespace drun::agent {

control::Hello take_inventory();

}  // namespace drun::agent
