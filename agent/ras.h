// What NCCL (2.24 and later) tells of all ranks of a job, at the address in NCCL_RAS_ADDR: text for people.
// https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/troubleshooting/ras.html
#pragma once

#include <array>
#include <boost/asio/ip/tcp.hpp>
#include <string>

#include "base/asio.h"

namespace drun::agent {

class RasQuestion {
 public:
  explicit RasQuestion(const asio::any_io_executor& executor) : socket_(executor) {}

  // Once. Text of at most kMostText bytes and a word if it was cut off, in ASCII without control characters but line
  // ends. Empty: `address` ("localhost:28028") is not one of this host, nobody is there, it is not NCCL, or it did not
  // begin to answer until the deadline or stop().
  Task<std::string> ask(std::string address, Deadline deadline);
  void stop();

  static constexpr std::size_t kMostText = 16u << 10;

 private:
  Task<bool> connect(const asio::ip::tcp::endpoint& endpoint);

  asio::ip::tcp::socket socket_;
  std::array<char, 4096> piece_{};
  bool stopped_ = false;
};

}  // namespace drun::agent
