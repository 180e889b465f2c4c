#include "agent/worker_socket.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <future>
#include <string>
#include <vector>

#include "rendezvous/agent_socket.h"

namespace drun::agent {
namespace {

using rendezvous::Fetched;

class WorkerSocketTest : public ::testing::Test {
 protected:
  WorkerSocketTest() {
    auto made = WorkerSocket::create(io_, "0123456789ab");
    EXPECT_TRUE(made) << made.error().message();
    socket_ = std::move(*made);
    socket_->set_handout(rendezvous::encode_handout(rendezvous::Handout()));
    tasks_.spawn(socket_->run());
  }
  ~WorkerSocketTest() override {
    socket_->stop();
    io_.restart();
    io_.run_for(std::chrono::seconds(20));
  }
  // A worker that starts.
  Result<Fetched> fetch() {
    const std::string path = socket_->path();
    auto worker =
        std::async(std::launch::async, [path] { return rendezvous::fetch_handout(path, std::chrono::seconds(20)); });
    while (worker.wait_for(std::chrono::seconds(0)) != std::future_status::ready) {
      io_.restart();
      io_.run_for(std::chrono::milliseconds(1));
    }
    return worker.get();
  }

  asio::io_context io_{1};
  TaskGroup tasks_{io_.get_executor()};
  std::unique_ptr<WorkerSocket> socket_;
};

TEST_F(WorkerSocketTest, SharesOneMemoryThatGrowsButCannotShrink) {
  socket_->share_memory([](const Error& error) { ADD_FAILURE() << error.message(); });
  auto one = fetch(), other = fetch();
  ASSERT_TRUE(one && other);
  ASSERT_TRUE(one->memory && other->memory);
  EXPECT_EQ(::ftruncate(one->memory.get(), 1 << 20), 0);
  EXPECT_EQ(::lseek(other->memory.get(), 0, SEEK_END), 1 << 20) << "it is the same";
  EXPECT_NE(::ftruncate(other->memory.get(), 0), 0);
  EXPECT_EQ(::lseek(one->memory.get(), 0, SEEK_END), 1 << 20);
  EXPECT_NE(::fcntl(one->memory.get(), F_ADD_SEALS, F_SEAL_GROW), 0);
}

TEST_F(WorkerSocketTest, SaysOnceThatThereIsNoMemory) {
  std::vector<std::string> said;
  socket_->share_memory([&](const Error& error) { said.push_back(error.message()); },
                        [] { return Result<Fd>(fail(errno_error(EACCES, "memfd_create"))); });
  for (int i = 0; i < 3; ++i) {
    const auto fetched = fetch();
    ASSERT_TRUE(fetched);
    EXPECT_FALSE(fetched->memory);
  }
  EXPECT_EQ(said, std::vector<std::string>{"memfd_create: permission denied"});
}

TEST_F(WorkerSocketTest, SharesNoneUnlessItIsToldTo) {
  const auto fetched = fetch();
  ASSERT_TRUE(fetched);
  EXPECT_FALSE(fetched->memory);
}

}  // namespace
}  // namespace drun::agent
