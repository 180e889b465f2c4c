// The YAML file of horovodrun's --config-file, as options of horovodrun. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace drun::cli {

struct HorovodSetting {
  std::string key;     // "stall_check.enabled"
  std::string option;  // "--no-stall-check"; "" = a key that horovodrun does not know and ignores
  std::string value;   // "" for an option without one
};

// The settings in the order of the file; of a key that is there twice, the last one counts. Keys without a value are
// left out. Errors are Errc::kUsage with the subject "NAME:LINE". Aliases and several documents are refused.
Result<std::vector<HorovodSetting>> parse_horovodrun_file(std::string_view text, const std::string& name);

}  // namespace drun::cli
