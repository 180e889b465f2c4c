// JSON as text for files, pipes and terminals: names and output of programs in it may hold any byte, so invalid UTF-8
// is replaced and every control character escaped. Header only, for targets that have nlohmann's library.
#pragma once

#include <string>

#include <nlohmann/json.hpp>

#include "base/clean_text.h"

namespace drun {

// `indent` -1: on one line.
template <typename Json>
std::string json_text(const Json& json, int indent = -1) {
  return escape_controls(json.dump(indent, ' ', false, Json::error_handler_t::replace));
}

}  // namespace drun
