// A control channel without a connection: the test plays the agent at its other end. One thread.
#pragma once

#include <algorithm>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/asio.h"
#include "control/frames.h"
#include "control/messages.h"
#include "transport/transport.h"

namespace drun::testing {

// Outlives its channel.
class FakeAgent {
 public:
  explicit FakeAgent(asio::io_context& io) : arrived_(io.get_executor()), writable_(io.get_executor()) {}

  std::unique_ptr<transport::Channel> channel() { return std::make_unique<End>(*this); }

  // Actions of the agent.
  template <typename Message>
  void say(control::Type type, const Message& message) {
    say_body(type, control::encode(message));
  }
  void say(control::Type type) { say_body(type, {}); }
  void say_body(control::Type type, const std::string& body) { write(control::encode_frame(type, body)); }
  void write(const std::string& bytes) {
    bytes_ += bytes;
    arrived_.notify();
  }
  void exit(int status, std::string last_words = {}) {
    exit_status_ = status;
    last_words_ = std::move(last_words);
    ended_ = true;
    arrived_.notify();
  }
  bool takes_raw_bytes = false;                 // drun sends no frames yet
  void stop_reading() { is_reading_ = false; }  // as a host that is frozen
  void go_on_reading() {
    is_reading_ = true;
    writable_.notify();
  }

  // Actions of drun.
  std::vector<control::Frame> frames;                 // that it sent, in order
  std::function<void(const control::Frame&)> answer;  // called for each of them
  std::string raw;                                    // bytes that are no frames: those of a delivery
  bool is_closed = false;                             // by drun
  bool has_eof = false;                               // drun sends nothing more

  std::size_t count(control::Type type) const {
    return static_cast<std::size_t>(
        std::count_if(frames.begin(), frames.end(), [type](const auto& frame) { return frame.type == type; }));
  }
  // The last of that type, decoded.
  template <typename Message>
  Message last(control::Type type) const {
    const auto found =
        std::find_if(frames.rbegin(), frames.rend(), [type](const auto& frame) { return frame.type == type; });
    return found == frames.rend() ? Message() : control::decode<Message>(found->body).value();
  }

 private:
  class End : public transport::Channel {
   public:
    explicit End(FakeAgent& agent) : agent_(agent) {}

    Task<Result<std::size_t>> read_some(asio::mutable_buffer buffer) override {
      while (agent_.bytes_.empty() && !agent_.ended_ && !agent_.is_closed) co_await agent_.arrived_.wait_and_reset();
      if (agent_.is_closed) co_return fail(Errc::kCanceled, "", "closed");
      const std::size_t n = std::min(buffer.size(), agent_.bytes_.size());
      std::memcpy(buffer.data(), agent_.bytes_.data(), n);
      agent_.bytes_.erase(0, n);
      co_return n;
    }
    Task<Result<void>> write(asio::const_buffer buffer) override {
      while (!agent_.is_reading_ && !agent_.is_closed) co_await agent_.writable_.wait_and_reset();
      if (agent_.is_closed || agent_.ended_) co_return fail(Errc::kClosed, "", "broken pipe");
      agent_.take(std::string_view(static_cast<const char*>(buffer.data()), buffer.size()));
      co_return Result<void>();
    }
    void close_write() override { agent_.has_eof = true; }
    std::string stderr_text() const override { return agent_.last_words_; }
    int exit_status() const override { return agent_.exit_status_; }
    void close() override {
      agent_.is_closed = true;
      agent_.arrived_.notify();
      agent_.writable_.notify();
    }
    Task<void> join() override { co_return; }

   private:
    FakeAgent& agent_;
  };

  void take(std::string_view bytes) {
    if (takes_raw_bytes) {
      raw.append(bytes);
      return;
    }
    parser_.push(bytes);
    for (auto frame = parser_.next(); frame && *frame; frame = parser_.next()) {
      frames.push_back(std::move(**frame));
      if (answer) answer(control::Frame(frames.back()));
    }
  }

  Event arrived_, writable_;
  std::string bytes_, last_words_;
  control::FrameParser parser_;
  int exit_status_ = -1;
  bool ended_ = false;
  bool is_reading_ = true;
};

}  // namespace drun::testing
