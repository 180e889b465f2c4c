#include "base/accept.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <boost/asio/connect.hpp>
#include <vector>

namespace drun {
namespace {

using asio::ip::tcp;

class AcceptAll : public ::testing::Test {
 protected:
  AcceptAll() : acceptor_(io_, tcp::endpoint(asio::ip::address_v4::loopback(), 0)) {
    std::function<void(tcp::socket)> take = [this](tcp::socket socket) { taken_.push_back(std::move(socket)); };
    tasks_.spawn(accept_all(acceptor_, std::move(take)));
  }
  tcp::socket connect() {
    tcp::socket socket(io_);
    socket.connect(acceptor_.local_endpoint());
    return socket;
  }
  void run_until_taken(std::size_t n) {
    const Deadline limit = Clock::now() + std::chrono::seconds(20);
    while (taken_.size() < n && Clock::now() < limit) io_.run_one_for(std::chrono::milliseconds(20));
    ASSERT_EQ(taken_.size(), n);
  }

  asio::io_context io_{1};
  tcp::acceptor acceptor_;
  TaskGroup tasks_{io_.get_executor()};
  std::vector<tcp::socket> taken_;
};

TEST_F(AcceptAll, ConnectionsAreNotInheritedByPrograms) {
  const tcp::socket one = connect(), other = connect();
  run_until_taken(2);
  for (auto& socket : taken_) EXPECT_TRUE(::fcntl(socket.native_handle(), F_GETFD) & FD_CLOEXEC);
  acceptor_.close();
  io_.run();  // ends
}

TEST_F(AcceptAll, GoesOnWhenDescriptorsWereUsedUp) {
  const tcp::socket waiting = connect();
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  rlimit none = before;
  none.rlim_cur = 0;  // no new ones
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  for (int i = 0; i < 5; ++i) io_.run_one_for(std::chrono::milliseconds(100));
  const std::size_t n_taken = taken_.size();
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_EQ(n_taken, 0u);
  run_until_taken(1);
  acceptor_.close();
  io_.run();
}

}  // namespace
}  // namespace drun
