// The largest packet that passes between two addresses without being cut: datagrams of many sizes are sent with "don't
// fragment" set, and those that arrive are noted. Nothing is answered, so nobody can be flooded with answers.
#pragma once

#include <string>
#include <vector>

#include "base/asio.h"
#include "netdetect/stopping.h"

namespace drun::netdetect {

// One end. Both have one, send to the other's, and tell each other what arrived.
class MtuSocket {
 public:
  // On a free port of `source`. `token` and `session` tell whose the datagrams are.
  static Result<std::unique_ptr<MtuSocket>> open(const asio::any_io_executor& executor, const std::string& source,
                                                 std::string token, std::string session);
  virtual ~MtuSocket() = default;
  virtual int port() const = 0;
  // Sends every size a few times, over some 40 ms. What is larger than the interface takes is left out.
  virtual Task<void> send_all(std::string address, int port) = 0;
  // Until close(): notes what arrives.
  virtual Task<void> receive() = 0;
  virtual int largest() const = 0;  // bytes of the largest IP packet that arrived; 0: none
  virtual void close() = 0;
};

// Sizes of IP packets worth a try through an interface with this MTU, largest first. Pure.
std::vector<int> mtu_ladder(int interface_mtu);

}  // namespace drun::netdetect
