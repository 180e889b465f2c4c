// Measures the largest packet that passes between two addresses without fragmentation: each end sends datagrams of
// many sizes with "don't fragment" set, and notes those that arrive. Nothing is answered, so no host can be flooded
// with answers.
#pragma once

#include <string>
#include <vector>

#include "base/asio.h"
#include "netdetect/stopping.h"

namespace drun::netdetect {

// One end. Both ends have a socket, send to the other's, and exchange their results over a TCP connection.
class MtuSocket {
 public:
  // Opens a free port of `source`. `token` and `session` authenticate the datagrams.
  static Result<std::unique_ptr<MtuSocket>> open(const asio::any_io_executor& executor, const std::string& source,
                                                 std::string token, std::string session);
  virtual ~MtuSocket() = default;
  virtual int port() const = 0;
  // Sends every size three times, 12 ms apart. Skips sizes above the interface's MTU.
  virtual Task<void> send_all(std::string address, int port) = 0;
  // Notes incoming datagrams until close().
  virtual Task<void> receive() = 0;
  virtual int largest() const = 0;  // bytes of the largest IP packet that arrived; 0: none
  virtual void close() = 0;
};

// Sizes of IP packets worth a try through an interface with this MTU, largest first. Pure.
std::vector<int> mtu_ladder(int interface_mtu);
// The largest of these that an interface with the MTU `to_mtu` can receive from one with `from_mtu`; 0 if one of them
// is unknown. Pure.
int largest_tried(int from_mtu, int to_mtu);

}  // namespace drun::netdetect
