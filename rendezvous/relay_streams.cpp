#include "rendezvous/relay_streams.h"

#include <array>
#include <boost/asio/buffer.hpp>
#include <chrono>
#include <utility>

#include "base/accept.h"

namespace drun::rendezvous {

namespace {
constexpr std::size_t kChunk = 64u << 10;
constexpr auto kDrainTimeout = std::chrono::seconds(5);

// The bytes that are there. Their buffer is on the stack: a thousand hosts with one each would cost 64 MB.
std::string read_now(RelayStreams::Socket& socket, boost::system::error_code& ec) {
  std::array<char, kChunk> chunk;
  const std::size_t n = socket.read_some(asio::buffer(chunk), ec);
  return {chunk.data(), ec ? 0 : n};
}

}  // namespace

RelayStreams::RelayStreams(const asio::any_io_executor& executor, RelayOutput output)
    : output_(std::move(output)), tasks_(executor) {}

void RelayStreams::add(std::uint32_t connection, Socket socket) {
  boost::system::error_code ignored;
  socket.non_blocking(true, ignored);
  set_close_on_exec(socket.native_handle());
  auto stream = std::make_shared<Stream>(connection, std::move(socket));
  streams_[connection] = stream;
  tasks_.spawn(read(std::move(stream)));
}

Task<void> RelayStreams::read(StreamPtr stream) {
  while (stream->socket.is_open()) {
    const auto [ec] = co_await stream->socket.async_wait(Socket::wait_read, as_result);
    if (ec || !stream->socket.is_open()) break;
    if (output_.is_full && output_.is_full()) {
      stream->resumed.reset();
      co_await stream->resumed.wait();
      continue;
    }
    boost::system::error_code read_ec;
    std::string bytes = read_now(stream->socket, read_ec);
    if (read_ec == asio::error::would_block || read_ec == asio::error::interrupted) continue;
    if (read_ec) break;
    if (!stream->closed_by_other_end) output_.data(stream->number, std::move(bytes));
  }
  stream->shut();
  const auto found = streams_.find(stream->number);
  if (found != streams_.end() && found->second == stream) streams_.erase(found);
  if (!stream->closed_by_other_end) output_.close(stream->number);
}

void RelayStreams::deliver(std::uint32_t connection, std::string bytes) {
  const auto found = streams_.find(connection);
  if (found == streams_.end() || bytes.empty()) return;
  const StreamPtr stream = found->second;
  if (stream->closed_by_other_end || !stream->socket.is_open()) return;
  stream->queued += bytes.size();
  stream->queue.push_back(std::move(bytes));
  if (stream->flushing) {
    if (stream->queued > kMaxRelayQueue) stream->shut();
    return;
  }
  write_some(*stream);
  if (stream->queued > kMaxRelayQueue) stream->shut();
  if (stream->queue.empty() || !stream->socket.is_open()) return;
  stream->flushing = true;
  stream->drained.reset();
  tasks_.spawn(flush(stream));
}

void RelayStreams::write_some(Stream& stream) {
  while (!stream.queue.empty()) {
    boost::system::error_code ec;
    const std::size_t n = stream.socket.write_some(asio::buffer(stream.queue.front()) + stream.front_sent, ec);
    if (ec == asio::error::would_block) return;
    if (ec) return stream.shut();
    stream.front_sent += n;
    if (stream.front_sent < stream.queue.front().size()) continue;
    stream.queued -= stream.front_sent;
    stream.front_sent = 0;
    stream.queue.pop_front();
  }
}

// No deadline of its own: the queue is bounded, and shut() ends this.
Task<void> RelayStreams::flush(StreamPtr stream) {
  while (stream->socket.is_open() && !stream->queue.empty()) {
    const auto [ec] = co_await stream->socket.async_wait(Socket::wait_write, as_result);
    if (ec || !stream->socket.is_open()) break;
    write_some(*stream);
  }
  stream->flushing = false;
  stream->drained.notify();
}

void RelayStreams::close(std::uint32_t connection) {
  const auto found = streams_.find(connection);
  if (found == streams_.end() || found->second->closed_by_other_end) return;
  const StreamPtr stream = found->second;
  stream->closed_by_other_end = true;
  if (!stream->flushing) return stream->shut();
  tasks_.spawn(close_when_drained(stream));
}

Task<void> RelayStreams::close_when_drained(StreamPtr stream) {
  const Deadline deadline = Clock::now() + kDrainTimeout;
  co_await stream->drained.wait_until(deadline);
  stream->shut();
}

void RelayStreams::resume() {
  for (const auto& [connection, stream] : streams_) stream->resumed.notify();
}

void RelayStreams::stop() {
  const auto all = streams_;
  for (const auto& [connection, stream] : all) {
    stream->closed_by_other_end = true;  // suppresses output_.close()
    stream->shut();
  }
}

}  // namespace drun::rendezvous
