#include "control/frame_queue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace drun::control {
namespace {

using ::testing::ElementsAre;

class FrameQueues : public testing::Test {
 protected:
  // Runs the loop until nothing is ready.
  void settle() {
    io_.restart();
    io_.poll();
  }
  static Task<void> write_all(FrameQueue& queue, std::vector<std::string>& out, bool& ended) {
    for (;;) {
      const auto frames = co_await queue.next();
      if (!frames) break;
      out.push_back(*frames);
    }
    ended = true;
  }
  static Task<void> flush(FrameQueue& queue, bool& flushed) {
    co_await queue.flush(Deadline::max());
    flushed = true;
  }
  static std::string ping(const std::string& body) { return encode_frame(Type::kPing, body); }
  static std::string output(const std::string& body) { return encode_frame(Type::kOutput, body); }
  void begin_writing() { tasks_.spawn(write_all(queue_, written_, ended_)); }

  asio::io_context io_;
  FrameQueue queue_{io_.get_executor()};
  TaskGroup tasks_{io_.get_executor()};
  std::vector<std::string> written_;
  bool ended_ = false;
};

TEST_F(FrameQueues, UrgentOnesGoFirstAndEachKindInItsOrder) {
  queue_.push_bulk(Type::kOutput, "1");
  queue_.push_bytes("magic");
  queue_.push(Type::kPing, "2");
  queue_.push_bulk(Type::kOutput, "3");
  queue_.push(Type::kPing, "4");
  begin_writing();
  settle();
  EXPECT_THAT(written_, ElementsAre("magic" + ping("2") + ping("4") + output("1") + output("3")));
  queue_.push(Type::kPing, "5");
  settle();
  EXPECT_EQ(written_.back(), ping("5"));
  queue_.close();
  settle();
  EXPECT_TRUE(ended_);
}

TEST_F(FrameQueues, AreWrittenTogetherAsLongAsTheyAreSmall) {
  const std::string large(20'000, 'x'), half(8'000, 'y');
  queue_.push_bulk(Type::kOutput, "1");
  queue_.push_bulk(Type::kOutput, large);
  for (int i = 0; i < 3; ++i) queue_.push_bulk(Type::kOutput, half);
  begin_writing();
  settle();
  EXPECT_THAT(written_, ElementsAre(output("1"), output(large), output(half) + output(half), output(half)));
  EXPECT_EQ(queue_.bulk_bytes(), 0u);
  queue_.close();
  settle();
}

TEST_F(FrameQueues, AFlushWaitsForTheWriter) {
  bool flushed = false;
  queue_.push(Type::kPing, "1");
  tasks_.spawn(flush(queue_, flushed));
  settle();
  EXPECT_FALSE(flushed);
  begin_writing();
  settle();
  EXPECT_TRUE(flushed);
  queue_.close();
  settle();
}

TEST_F(FrameQueues, AreStillTakenAfterFinish) {
  queue_.push_bulk(Type::kOutput, "1");
  queue_.finish();
  begin_writing();
  settle();
  EXPECT_TRUE(ended_);
  EXPECT_THAT(written_, ElementsAre(output("1")));
}

TEST_F(FrameQueues, AreDroppedByCloseWhichEndsWriterAndFlush) {
  bool flushed = false;
  queue_.push(Type::kPing, "1");
  tasks_.spawn(flush(queue_, flushed));
  settle();
  queue_.close();
  queue_.push(Type::kPing, "2");
  begin_writing();
  settle();
  EXPECT_TRUE(flushed);
  EXPECT_TRUE(ended_);
  EXPECT_THAT(written_, ElementsAre());
}

}  // namespace
}  // namespace drun::control
