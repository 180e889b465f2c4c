// Finds the fastest of several networks that all hosts share, if no driver reports a speed, by a few transfers.
#pragma once

#include <chrono>
#include <vector>

#include "base/asio.h"
#include "launcher/network/link_tests.h"
#include "launcher/network/network.h"

namespace drun::launcher {

// Measures some pairs of hosts on each such network, one after the other, for `each`; then repeats the probe's choice
// with the measured speeds. Returns true at once if there is no choice between networks. `gone`: hosts that take no
// part. False if not all of the networks could be tried in time: the choice is unchanged.
Task<bool> choose_by_speed(NetworkProbe& probe, LinkCheck& links, std::vector<int> gone, std::chrono::milliseconds each,
                           Deadline deadline);

}  // namespace drun::launcher
