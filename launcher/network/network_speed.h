// Which of several networks is the fastest, where all hosts share them and no driver says: a few transfers tell.
#pragma once

#include <chrono>
#include <vector>

#include "base/asio.h"
#include "launcher/network/link_tests.h"
#include "launcher/network/network.h"

namespace drun::launcher {

// On each such network some pairs of hosts, one after the other, for `each`; then the probe's choice is made again with
// what was measured. Nothing is done, and nothing costs time, where the networks are no question. `gone`: hosts that
// take no part. False if there was such a question and no answer, as not all of the networks could be tried in time:
// the choice is what it was.
Task<bool> choose_by_speed(NetworkProbe& probe, LinkCheck& links, std::vector<int> gone, std::chrono::milliseconds each,
                           Deadline deadline);

}  // namespace drun::launcher
