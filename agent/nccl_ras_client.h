// Client of NCCL's RAS service (2.24 and later), which reports on all ranks of a job at the address in NCCL_RAS_ADDR,
// as text for users.
// https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/troubleshooting/ras.html
#pragma once

#include <array>
#include <boost/asio/ip/tcp.hpp>
#include <string>

#include "base/asio.h"

namespace drun::agent {

class NcclRasClient {
 public:
  explicit NcclRasClient(const asio::any_io_executor& executor) : socket_(executor) {}

  // Call it once. Returns at most kMaxText bytes of ASCII text without control characters except newlines, with a
  // note if it was cut off. Empty: `address` ("localhost:28028") is not on this host, nothing listens there, it is
  // not NCCL, or it did not begin to answer before the deadline or stop().
  Task<std::string> ask(std::string address, Deadline deadline);
  void stop();

  static constexpr std::size_t kMaxText = 16u << 10;

 private:
  Task<bool> connect(const asio::ip::tcp::endpoint& endpoint);

  asio::ip::tcp::socket socket_;
  std::array<char, 4096> piece_{};
  bool stopped_ = false;
};

}  // namespace drun::agent
