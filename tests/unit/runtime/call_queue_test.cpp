#include "runtime/src/call_queue.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <vector>

namespace drun::runtime {
namespace {

// Never destroyed: its thread goes on to wait.
CallQueue& new_queue() { return *new CallQueue(); }

TEST(CallQueue, CallsRunInTheirOrder) {
  CallQueue& queue = new_queue();
  std::vector<int> ran;
  std::vector<Request> requests(10);
  for (int i = 0; i < 10; ++i) {
    Request& request = requests[static_cast<std::size_t>(i)];
    queue.mark_submitted(request);
    queue.submit([&, i] {
      ran.push_back(i);
      queue.complete(request, {});
    });
  }
  for (const Request& request : requests) EXPECT_TRUE(queue.wait(request));
  EXPECT_EQ(ran, (std::vector<int>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}));
}

#ifndef __SANITIZE_THREAD__  // it does not support threads that are made after a fork
Status run_one(CallQueue& queue) {
  Request request;
  queue.mark_submitted(request);
  queue.submit([&] { queue.complete(request, {}); });
  return queue.wait(request);
}

// A program that has left the job and forks, whose child joins: a condition variable of the child still counts the
// parent's thread among its waiters.
TEST(CallQueue, AForkedChildHasAThreadOfItsOwn) {
  CallQueue& queue = new_queue();
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(run_one(queue));
  ::usleep(10'000);  // the queue's thread waits again: that is what the child inherits
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(10);
    for (int i = 0; i < 1000; ++i) {
      if (!run_one(queue)) ::_exit(1);
    }
    ::_exit(0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "wait status " << status;
}
#endif

}  // namespace
}  // namespace drun::runtime
