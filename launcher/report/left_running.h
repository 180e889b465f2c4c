// Messages about what a job that ended well left. Pure.
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

// For a job that left processes in the background, such as services that daemonize, which drun has ended too. Without
// the message the user assumes that they still run. One sentence for all hosts. `hosts` is not empty.
std::string left_running_text(const std::vector<LeftRunning>& hosts);
// For hosts whose agents did not say how their workers ended.
std::string unconfirmed_text(const std::vector<std::string>& hosts);

}  // namespace drun::launcher
