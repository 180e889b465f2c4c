// Text search for tests.
#pragma once

#include <string>

namespace drun::testing {

inline bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace drun::testing
