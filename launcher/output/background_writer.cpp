#include "cli/message_writer.h"

#include <boost/asio/post.hpp>
#include <future>
#include <memory>
#include <utility>

namespace drun::cli {

void MessageWriter::push(std::string text) {
  ++n_waiting_;
  asio::post(thread_, [this, text = std::move(text)] {
    (void)sink_.write(text, no_limit_);  // an error has no other place to go to
    --n_waiting_;
  });
}

bool MessageWriter::wait(std::chrono::milliseconds limit) {
  if (n_waiting_ == 0) return true;
  const auto written = std::make_shared<std::promise<void>>();
  std::future<void> all = written->get_future();
  asio::post(thread_, [written] { written->set_value(); });
  return all.wait_for(limit) == std::future_status::ready;
}

}  // namespace drun::cli
