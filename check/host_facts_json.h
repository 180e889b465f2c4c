// Facts as JSON, with units in the names. Unknown values are left out.
#pragma once

#include <nlohmann/json.hpp>

#include "control/host_facts.h"

namespace drun::check {

nlohmann::json to_json(const control::HostFacts& facts);

}  // namespace drun::check
