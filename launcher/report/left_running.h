// The message for a job that ended well but left processes in the background, such as services that daemonize, which
// drun has ended too. Without the message the user assumes that they still run. Pure.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace drun::launcher {

struct LeftRunning {
  std::string host;
  std::size_t n_processes = 0;
  std::string name;  // name of one of them; "" = not known
};

// One sentence for all hosts. `hosts` is not empty.
std::string left_running_text(const std::vector<LeftRunning>& hosts);

}  // namespace drun::launcher
