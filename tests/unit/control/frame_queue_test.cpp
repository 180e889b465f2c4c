#include "control/frame_queue.h"

#include <gtest/gtest.h>

namespace drun::control {
namespace {

class FrameQueues : public testing::Test {
 protected:
  // Runs the loop until nothing is ready.
  void settle() {
    io_.restart();
    io_.poll();
  }
  static Task<void> write_all(FrameQueue& queue, std::string& out, bool& ended) {
    for (;;) {
      const auto frame = co_await queue.next();
      if (!frame) break;
      out += frame->substr(4);  // without the length
    }
    ended = true;
  }
  static Task<void> flush(FrameQueue& queue, bool& flushed) {
    co_await queue.flush(Deadline::max());
    flushed = true;
  }
  void begin_writing() { tasks_.spawn(write_all(queue_, written_, ended_)); }

  asio::io_context io_;
  FrameQueue queue_{io_.get_executor()};
  TaskGroup tasks_{io_.get_executor()};
  std::string written_;
  bool ended_ = false;
};

TEST_F(FrameQueues, UrgentOnesGoFirstAndEachKindInItsOrder) {
  queue_.push_bulk(Type::kOutput, "1");
  queue_.push_bytes("len:magic");
  queue_.push(Type::kPing, "2");
  queue_.push_bulk(Type::kOutput, "3");
  queue_.push(Type::kPing, "4");
  begin_writing();
  settle();
  EXPECT_EQ(written_,
            "magic\x4c"
            "2\x4c"
            "4\x0b"
            "1\x0b"
            "3");
  queue_.push(Type::kPing, "5");
  settle();
  EXPECT_TRUE(
      written_.ends_with("\x4c"
                         "5"));
  queue_.close();
  settle();
  EXPECT_TRUE(ended_);
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
  EXPECT_EQ(written_,
            "\x0b"
            "1");
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
  EXPECT_EQ(written_, "");
}

}  // namespace
}  // namespace drun::control
