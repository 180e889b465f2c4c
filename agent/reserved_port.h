// Reserves a TCP port for MASTER_PORT, so that nothing else takes it before the workers start.
#pragma once

#include <cstdint>
#include <string>

#include "base/error.h"
#include "base/fd.h"

namespace drun::agent {

struct ReservedPort {
  Fd socket;  // bound, never listens; the port is free again when it is closed
  std::uint16_t port = 0;
};

// Reserves a free port on an address of this host, "10.0.0.1" or "fd00::1".
Result<ReservedPort> reserve_port(const std::string& address);

}  // namespace drun::agent
