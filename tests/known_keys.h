// Keys in the text of one known_hosts file.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "transport/known_hosts.h"

namespace drun::testing {

inline std::vector<transport::KnownKey> find_known_keys(std::string_view text, const std::string& file,
                                                        const std::string& name, const std::string& plain_name) {
  transport::KnownHostLines lines(file);
  lines.append(text);
  return lines.find(name, plain_name);
}

}  // namespace drun::testing
