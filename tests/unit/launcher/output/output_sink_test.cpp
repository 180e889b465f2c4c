#include "launcher/output/output_sink.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <csignal>
#include <thread>

namespace drun::launcher {
namespace {

// Reads `fd` to its end, after `pause`.
std::string drain(int fd, std::chrono::milliseconds pause) {
  std::this_thread::sleep_for(pause);
  std::string all;
  char chunk[4096];
  for (ssize_t n = 0; (n = ::read(fd, chunk, sizeof chunk)) > 0;) all.append(chunk, static_cast<std::size_t>(n));
  return all;
}

void expect_all_bytes_arrive(Fd read_end, Fd write_end) {
  const std::string bytes = std::string(300000, 'x') + std::string("\0\xff", 2);
  std::string got;
  std::thread reader([&] { got = drain(read_end.get(), std::chrono::milliseconds(300)); });
  {
    OutputSink sink(write_end.get());
    const ReaderTimeout reader_timeout;
    EXPECT_TRUE(sink.write(bytes, reader_timeout).has_value());
    EXPECT_EQ(::fcntl(write_end.get(), F_GETFL) & O_NONBLOCK, 0) << "the flags are shared with others";
  }
  write_end.reset();
  reader.join();
  EXPECT_EQ(got, bytes);
}

std::pair<Fd, Fd> socket_pair() {
  int fds[2] = {-1, -1};
  EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
  return {Fd(fds[0]), Fd(fds[1])};
}

TEST(OutputSink, WaitsForASlowReaderOfAPipe) {
  auto pipe = make_pipe();
  ASSERT_TRUE(pipe.has_value());
  expect_all_bytes_arrive(std::move(pipe->read), std::move(pipe->write));
}

TEST(OutputSink, WaitsForASlowReaderOfASocket) {
  auto [a, b] = socket_pair();
  expect_all_bytes_arrive(std::move(a), std::move(b));
}

TEST(OutputSink, GivesUpAReaderThatTakesNothingWhenPatienceEndsMeanwhile) {
  auto pipe = make_pipe();
  ASSERT_TRUE(pipe.has_value());
  OutputSink sink(pipe->write.get());
  ReaderTimeout reader_timeout;
  std::thread other([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    reader_timeout.set(100);
  });
  const auto written = sink.write(std::string(300000, 'x'), reader_timeout);
  other.join();
  ASSERT_FALSE(written.has_value());
  EXPECT_EQ(written.error().code, Errc::kTimeout);
}

TEST(OutputSink, AReaderThatIsGoneIsAnError) {
  ::signal(SIGPIPE, SIG_IGN);
  auto pipe = make_pipe();
  ASSERT_TRUE(pipe.has_value());
  OutputSink sink(pipe->write.get());
  pipe->read.reset();
  const ReaderTimeout reader_timeout;
  EXPECT_FALSE(sink.write("x", reader_timeout).has_value());
}

TEST(OutputSink, WritesFilesWhereTheyStand) {
  char path[] = "/tmp/drun-sink-XXXXXX";
  Fd file(::mkstemp(path));
  ASSERT_TRUE(static_cast<bool>(file));
  ::unlink(path);
  ASSERT_EQ(::write(file.get(), "first ", 6), 6);
  OutputSink sink(file.get());
  const ReaderTimeout reader_timeout;
  ASSERT_TRUE(sink.write("second", reader_timeout).has_value());
  ::lseek(file.get(), 0, SEEK_SET);
  EXPECT_EQ(drain(file.get(), std::chrono::milliseconds(0)), "first second");
}

}  // namespace
}  // namespace drun::launcher
