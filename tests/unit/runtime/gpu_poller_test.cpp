// The thread that polls GPUs. Pollers are never destroyed, because their threads are detached.
#include "runtime/src/gpu_poller.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <future>
#include <thread>

namespace drun::runtime {
namespace {

using namespace std::chrono_literals;

TEST(GpuPoller, EndsOnlyAfterThePollInProgress) {
  static std::promise<void> begun;
  static std::atomic<bool> is_polling{false};
  static std::atomic<int> n_polls{0};
  static auto* const poller = new GpuPoller([] {
    is_polling = true;
    if (n_polls++ == 0) begun.set_value();
    std::this_thread::sleep_for(20ms);
    is_polling = false;
  });
  poller->begin();
  poller->begin();  // a second thread would make is_polling false too early, and n_polls grow twice as fast
  ASSERT_EQ(begun.get_future().wait_for(30s), std::future_status::ready);
  poller->stop();
  EXPECT_FALSE(is_polling);
  EXPECT_GE(n_polls, 1);
}

TEST(GpuPoller, MeasuresNoStopWhileTheProcessRuns) {
  static auto* const poller = new GpuPoller([] {});
  EXPECT_EQ(poller->stopped_ns()->load(), 0);
  poller->stop();  // before it has begun: there is no thread
}

}  // namespace
}  // namespace drun::runtime
