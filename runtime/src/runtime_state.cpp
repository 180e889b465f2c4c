#include "runtime/src/runtime_state.h"

#include <cstdlib>
#include <exception>

namespace drun::runtime {

RuntimeState::RuntimeState() : gpu_poller([this] { poll(); }) {
  process.on_gpu([this] { begin_polling(); }, gpu_poller.stopped_ns());
}

void RuntimeState::begin_polling() {
  // Runs before the driver's own exit handler, which was registered first.
  static const int registered = std::atexit([] { state().gpu_poller.stop(); });
  (void)registered;
  gpu_poller.begin();
}

void RuntimeState::poll() {
  queue.try_run([this] {
    try {
      process.poll();
    } catch (const std::exception&) {  // out of memory: the next poll tries again
    }
  });
}

}  // namespace drun::runtime
