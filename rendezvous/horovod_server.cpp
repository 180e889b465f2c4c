#include "rendezvous/horovod_server.h"

#include <netinet/tcp.h>
#include <sodium.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <boost/asio/buffer.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/write.hpp>
#include <cassert>
#include <chrono>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "base/accept.h"
#include "base/log.h"
#include "rendezvous/horovod_request.h"
#include "rendezvous/listening.h"

namespace drun::rendezvous {
namespace {

using Tcp = asio::ip::tcp;
using Socket = asio::generic::stream_protocol::socket;
using Key = std::pair<std::string, std::string>;  // scope, key

constexpr auto kHeadTimeout = std::chrono::seconds(5);       // until the token has been shown
constexpr auto kExchangeTimeout = std::chrono::seconds(30);  // then
constexpr std::size_t kTokenBytes = 16;

struct Connection {
  Connection(std::uint64_t n, Socket s) : id(n), socket(std::move(s)) {}
  void close() {
    boost::system::error_code ignored;
    socket.close(ignored);
  }
  std::uint64_t id;
  Socket socket;
};
using ConnectionPtr = std::shared_ptr<Connection>;

struct Answer {
  int status = 200;
  SharedBytes body;  // nullptr: empty
};

// The addresses of a rank have a number as their key, other values a name.
bool is_address_key(const std::string& key) {
  return std::all_of(key.begin(), key.end(), [](char c) { return c >= '0' && c <= '9'; });
}

class HorovodServerImpl final : public HorovodServer {
 public:
  HorovodServerImpl(const asio::any_io_executor& executor, HorovodServerOptions options)
      : executor_(executor), options_(std::move(options)), store_(options_.scopes), tasks_(executor) {}
  ~HorovodServerImpl() override { assert(tasks_.running() == 0); }

  Result<int> listen(const std::string& address) override {
    auto acceptor = listen_on(executor_, address);
    if (!acceptor) return fail(acceptor.error());
    const int port = acceptor->local_endpoint().port();
    acceptor_.emplace(std::move(*acceptor));
    // Clients speak first: the kernel hands a connection over with its request, so the thread wakes up once for both.
    // One that says nothing comes after a second.
    const int seconds = 1;
    ::setsockopt(acceptor_->native_handle(), IPPROTO_TCP, TCP_DEFER_ACCEPT, &seconds, sizeof seconds);
    std::function<void(Tcp::socket)> take = [this](Tcp::socket socket) { adopt(Socket(std::move(socket))); };
    tasks_.spawn(accept_all(*acceptor_, std::move(take)));
    return port;
  }

  void adopt(Socket socket) override {
    if (stopped_) return;
    if (connections_.size() >= options_.max_connections) {
      if (strangers_.empty()) return;  // a client of Horovod tries again, twice
      connections_.at(*strangers_.begin())->close();
      strangers_.erase(strangers_.begin());
    }
    auto connection = std::make_shared<Connection>(++last_connection_, std::move(socket));
    connections_.emplace(connection->id, connection);
    strangers_.insert(connection->id);
    tasks_.spawn(serve(std::move(connection)));
  }

  std::size_t n_connections() const override { return connections_.size(); }

  void stop() override {
    if (stopped_) return;
    stopped_ = true;
    boost::system::error_code ignored;
    if (acceptor_) acceptor_->close(ignored);
    for (const auto& [id, connection] : connections_) connection->close();
    for (const auto& [key, is_there] : waits_) is_there->notify();
  }

  Task<void> join() override { return tasks_.join(); }

 private:
  Task<void> serve(ConnectionPtr connection) {
    HorovodRequestReader reader(options_.token);
    auto guard = close_after(connection, kHeadTimeout);
    while (reader.state() == HorovodRequestReader::State::kIncomplete) {
      const bool is_open = co_await read_some(connection, reader);
      if (!is_open) break;
      if (reader.has_token() && strangers_.erase(connection->id) > 0) guard = close_after(connection, kExchangeTimeout);
    }
    if (reader.state() != HorovodRequestReader::State::kIncomplete) {
      Answer answer;
      answer.status = reader.refusal();
      if (reader.state() == HorovodRequestReader::State::kComplete) answer = co_await answer_to(reader.request());
      co_await write(connection, answer);
    }
    connection->close();
    strangers_.erase(connection->id);
    connections_.erase(connection->id);
  }

  std::unique_ptr<DeadlineGuard> close_after(ConnectionPtr connection, Clock::duration time) {
    return std::make_unique<DeadlineGuard>(executor_, Clock::now() + time, [connection] { connection->close(); });
  }

  // False: the connection has ended.
  Task<bool> read_some(ConnectionPtr connection, HorovodRequestReader& reader) {
    std::array<char, 8192> bytes;
    const auto buffer = asio::buffer(bytes);
    const auto [ec, n] = co_await connection->socket.async_read_some(buffer, as_result);
    if (!ec) reader.take(std::string_view(bytes.data(), n));
    co_return !ec;
  }

  Task<Answer> answer_to(HorovodRequest& request) {
    Answer answer;
    switch (request.method) {
      case HorovodRequest::Method::kPut:
        if (!put(request)) answer.status = 507;
        break;
      case HorovodRequest::Method::kDelete:
        store_.finish(request.scope, request.key);
        break;
      case HorovodRequest::Method::kGet:
        answer.body = store_.get(request.scope, request.key);
        if (!answer.body && is_address_key(request.key)) answer.body = co_await wait_for(request.scope, request.key);
        if (!answer.body) answer.status = 404;
        break;
    }
    co_return answer;
  }

  bool put(HorovodRequest& request) {
    auto value = std::make_shared<const std::string>(std::move(request.body));
    if (!store_.put(request.scope, request.key, std::move(value))) {
      log::info("Horovod's rendezvous is full: " + request.scope + "/" + request.key + " was refused");
      return false;
    }
    const auto [first, last] = waits_.equal_range(Key(request.scope, request.key));
    for (auto at = first; at != last; ++at) at->second->notify();
    return true;
  }

  Task<SharedBytes> wait_for(std::string scope, std::string key) {
    Event is_there(executor_);
    const auto place = waits_.emplace(Key(scope, key), &is_there);
    if (!stopped_) co_await is_there.wait_until(Clock::now() + options_.address_timeout);
    waits_.erase(place);
    co_return store_.get(scope, key);
  }

  Task<void> write(ConnectionPtr connection, Answer answer) {
    const std::string head = horovod_response_head(answer.status, answer.body ? answer.body->size() : 0);
    const std::array<asio::const_buffer, 2> buffers = {asio::buffer(head),
                                                       answer.body ? asio::buffer(*answer.body) : asio::const_buffer()};
    co_await asio::async_write(connection->socket, buffers, as_result);
  }

  asio::any_io_executor executor_;
  HorovodServerOptions options_;
  HorovodStore store_;
  std::optional<Tcp::acceptor> acceptor_;
  std::uint64_t last_connection_ = 0;
  std::map<std::uint64_t, ConnectionPtr> connections_;
  std::set<std::uint64_t> strangers_;  // have not shown the token; ids grow with age
  std::multimap<Key, Event*> waits_;
  bool stopped_ = false;
  TaskGroup tasks_;
};

}  // namespace

std::string make_horovod_token() {
  if (sodium_init() < 0) std::abort();  // no random numbers
  std::array<unsigned char, kTokenBytes> bytes;
  randombytes_buf(bytes.data(), bytes.size());
  std::string out(2 * kTokenBytes + 1, '\0');
  sodium_bin2hex(out.data(), out.size(), bytes.data(), bytes.size());
  out.pop_back();
  return out;
}

std::unique_ptr<HorovodServer> HorovodServer::create(const asio::any_io_executor& executor,
                                                     HorovodServerOptions options) {
  return std::make_unique<HorovodServerImpl>(executor, std::move(options));
}

}  // namespace drun::rendezvous
