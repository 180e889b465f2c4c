// How the launcher speaks to the user: the cli's printer on the other side, a recorder in tests.
#pragma once

#include <string>

#include "base/error.h"

namespace drun::launcher {

class Reporter {
 public:
  virtual ~Reporter() = default;
  virtual void note(const std::string& text) = 0;  // something that the user did not ask for but should know
  virtual void warning(const std::string& text) = 0;
  virtual void error(const Error& error) = 0;
};

}  // namespace drun::launcher
