// The end of one worker's output, for the report of its failure. Bounded.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "control/messages.h"

namespace drun::launcher {

class LastLines {
 public:
  static constexpr std::size_t kLines = 20;
  static constexpr std::size_t kBytes = 8u << 10;  // of both streams; older output is dropped
  static constexpr std::size_t kLineBytes = 500;   // of a line; a longer line is cut, with a mark

  void push(control::Stream stream, std::string_view bytes);
  // Without line ends, colors and other escape sequences; control characters as '?', empty lines at the end removed.
  std::vector<std::string> lines() const;

 private:
  std::string bytes_;
  control::Stream last_ = control::Stream::kStdout;
  bool cut_ = false;  // bytes_ begins within a line
};

}  // namespace drun::launcher
