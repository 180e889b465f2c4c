#include "launcher/output/background_writer.h"

#include <gtest/gtest.h>
#include <poll.h>

#include <csignal>
#include <string>

#include "tests/pipe_text.h"

namespace drun::launcher {
namespace {

using drun::testing::fill_pipe;
using drun::testing::read_to;
using std::chrono::milliseconds;
using std::chrono::seconds;

TEST(BackgroundWriter, ItsEndWritesEverything) {
  auto pipe = make_pipe();
  ASSERT_TRUE(pipe);
  for (int i = 0; i < 50; ++i) {
    {
      BackgroundWriter writer(pipe->write.get());
      writer.push("one\n");
      writer.push("two\n");
    }
    EXPECT_EQ(read_to(pipe->read.get(), "two\n"), "one\ntwo\n");
  }
}

TEST(BackgroundWriter, AReaderThatIsGoneIsNotWaitedFor) {
  ::signal(SIGPIPE, SIG_IGN);
  auto pipe = make_pipe();
  ASSERT_TRUE(pipe);
  BackgroundWriter writer(pipe->write.get());
  pipe->read.reset();
  EXPECT_FALSE(writer.error());
  writer.push("lost\n");
  EXPECT_TRUE(writer.wait(seconds(20)));
  ASSERT_TRUE(writer.error());
  EXPECT_EQ(writer.error()->cause, "write: broken pipe");
}

TEST(BackgroundWriter, TextsWaitForASlowReaderUpToALimit) {
  auto pipe = make_pipe();
  ASSERT_TRUE(pipe);
  const std::size_t n_before = fill_pipe(pipe->write.get());
  BackgroundWriter writer(std::move(pipe->write), 10);
  EXPECT_TRUE(writer.push("123456\n"));
  EXPECT_FALSE(writer.push("1234"));
  EXPECT_TRUE(writer.push("12\n"));
  EXPECT_FALSE(writer.wait(milliseconds(1)));
  EXPECT_EQ(read_to(pipe->read.get(), "12\n").substr(n_before), "123456\n12\n");
  EXPECT_TRUE(writer.wait(seconds(20)));
  EXPECT_TRUE(writer.push("1234567890")) << "nothing waits any more";
}

TEST(BackgroundWriter, AReaderThatSleepsCanBeLeft) {
  auto pipe = make_pipe();
  ASSERT_TRUE(pipe);
  fill_pipe(pipe->write.get());
  {
    BackgroundWriter writer(std::move(pipe->write));
    writer.push("lost\n");
    writer.leave();
  }
  pollfd closed{pipe->read.get(), 0, 0};
  EXPECT_EQ(::poll(&closed, 1, 20'000), 1) << "the thread has ended and closed the pipe";
  EXPECT_EQ(read_to(pipe->read.get(), "lost\n").find("lost"), std::string::npos);
}

}  // namespace
}  // namespace drun::launcher
