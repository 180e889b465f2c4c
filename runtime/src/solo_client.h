// The rendezvous of a job of one rank: keys and values in memory, no peers to wait for.
#pragma once

#include <memory>

#include "rendezvous/client.h"

namespace drun::runtime {

std::unique_ptr<rendezvous::Client> make_solo_client();

}  // namespace drun::runtime
