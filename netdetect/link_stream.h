// One end of a bandwidth measurement. Both ends are alike.
#pragma once

#include <boost/asio/ip/tcp.hpp>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/asio.h"
#include "netdetect/link_wire.h"
#include "netdetect/stopping.h"

namespace drun::netdetect {

using LinkSocket = std::shared_ptr<asio::ip::tcp::socket>;

struct StreamPlan {
  Deadline begin;
  std::chrono::milliseconds time{};  // the first quarter is warm-up
  bool sends = false, receives = false;
  std::uint64_t max_rate = 0;       // bits/s, over all streams; 0: no limit
  std::uint16_t segment_bytes = 0;  // as in LinkTarget
  std::shared_ptr<Event> over;      // ends it before `give_up`
  Deadline give_up;                 // later than the end of the window
};

struct StreamResult {
  LinkFigures figures;
  std::string error;  // a connection broke before the window ended
};

// Sends and receives on all sockets as fast as possible within `max_rate`. Closes them by a reset before it returns:
// neither side needs the data in flight, which would take seconds to drain through a slow link.
Task<StreamResult> run_streams(std::vector<LinkSocket> sockets, StreamPlan plan, std::shared_ptr<Stopping> stopping);

void close_by_reset(asio::ip::tcp::socket& socket);

}  // namespace drun::netdetect
