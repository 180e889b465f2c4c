#include "rendezvous/blocking.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <thread>

#include "base/fd.h"
#include "base/process_stat.h"

namespace drun::rendezvous {
namespace {

using namespace std::chrono_literals;
using std::chrono::steady_clock;

TEST(WaitFor, TimesOutAtItsDeadline) {
  const auto pipe = make_pipe();
  ASSERT_TRUE(pipe);
  BlockingDeadline deadline = steady_clock::now() + 20ms;
  const auto ready = wait_for(pipe->read.get(), POLLIN, deadline);
  ASSERT_FALSE(ready);
  EXPECT_EQ(ready.error().code, Errc::kTimeout);
  EXPECT_GE(steady_clock::now(), deadline);
}

// A child waits for two bytes, and is stopped before the first one for longer than its deadline. The first byte comes
// before or after the end of the stop.
void stop_for_longer_than_the_deadline(bool byte_comes_first) {
  auto data = make_pipe(), said = make_pipe();
  ASSERT_TRUE(data && said);
  const pid_t child = ::fork();
  if (child == 0) {
    BlockingDeadline deadline = steady_clock::now() + 3s;
    if (::write(said->write.get(), "r", 1) != 1) ::_exit(3);
    for (int i = 0; i < 2; ++i) {
      char byte = 0;
      if (!wait_for(data->read.get(), POLLIN, deadline) || ::read(data->read.get(), &byte, 1) != 1) ::_exit(1 + i);
      if (::write(said->write.get(), &byte, 1) != 1) ::_exit(3);
    }
    ::_exit(0);
  }
  ASSERT_GT(child, 0);
  char byte = 0;
  ASSERT_EQ(::read(said->read.get(), &byte, 1), 1);
  while (stat_of(child)->state != 'S') std::this_thread::yield();  // it waits
  ::kill(child, SIGSTOP);
  ASSERT_EQ(::waitpid(child, nullptr, WUNTRACED), child);
  if (byte_comes_first) {
    ASSERT_EQ(::write(data->write.get(), &byte, 1), 1);
  }
  std::this_thread::sleep_for(3500ms);  // longer than the deadline, and than a busy machine may take
  ::kill(child, SIGCONT);
  if (!byte_comes_first) {
    ASSERT_EQ(::write(data->write.get(), &byte, 1), 1);
  }
  pollfd p{said->read.get(), POLLIN, 0};
  ASSERT_EQ(::poll(&p, 1, 10'000), 1);
  ASSERT_EQ(::read(said->read.get(), &byte, 1), 1);
  ASSERT_EQ(::write(data->write.get(), &byte, 1), 1);
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "wait " << WEXITSTATUS(status) << " failed";
}

TEST(WaitFor, TimeOfAStopCountsForNoneOfTheWaitsWithOneDeadline) { stop_for_longer_than_the_deadline(false); }

TEST(WaitFor, TimeOfAStopCountsForNoneOfTheWaitsIfItEndsWithTheFirstByteThere) {
  stop_for_longer_than_the_deadline(true);
}

}  // namespace
}  // namespace drun::rendezvous
