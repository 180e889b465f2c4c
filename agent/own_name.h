// The addresses of the host's own name, which some programs give to their peers.
#pragma once

#include <map>
#include <string>

#include "agent/tool.h"
#include "base/asio.h"

namespace drun::agent {

// Asks getent for the addresses of the name. Without getent the output is empty.
Task<ToolOutput> ask_own_name(Tools& tools, std::string name, std::map<std::string, std::string> environment,
                              Deadline deadline);

// True for a worker of Horovod's own library that has peers on other hosts. From 0.23 on that library binds to the
// address of its host's own name. Pure, as the next one.
bool gives_out_own_name(const std::map<std::string, std::string>& environment);

// The warning for the hosts of such workers; "" = none. `ahosts`: the output of getent.
std::string own_name_warning(const std::string& ahosts);

}  // namespace drun::agent
