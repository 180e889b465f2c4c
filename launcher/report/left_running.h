// What drun says when a job that ended well has ended processes, too, that its workers had left in the background, as
// services do that make daemons of themselves: without a word the user takes them to be running. Pure.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace drun::launcher {

struct LeftRunning {
  std::string host;
  std::size_t n_processes = 0;
  std::string name;  // of one of them; "" = not known
};

// One sentence for all hosts. `hosts` is not empty.
std::string left_running_text(const std::vector<LeftRunning>& hosts);

}  // namespace drun::launcher
