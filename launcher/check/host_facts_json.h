// Facts as JSON, with units in the names. What is not known is left out.
#pragma once

#include <nlohmann/json.hpp>

#include "launcher/check/host_facts.h"

namespace drun::launcher {

nlohmann::json to_json(const HostFacts& facts);

}  // namespace drun::launcher
