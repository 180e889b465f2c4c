// The server over real sockets; its parser and its store have tests of their own.
#include "rendezvous/horovod_server.h"

#include <gtest/gtest.h>
#include <poll.h>

#include <chrono>
#include <future>
#include <thread>

#include "base/fd.h"
#include "rendezvous/blocking.h"

namespace drun::rendezvous {
namespace {

using namespace std::chrono_literals;
using SteadyClock = std::chrono::steady_clock;

constexpr const char* kToken = "secret";

class HorovodServerThread {
 public:
  explicit HorovodServerThread(std::size_t max_connections = 100, std::chrono::milliseconds address_timeout = 20s)
      : work_(asio::make_work_guard(io_)) {
    HorovodServerOptions options;
    options.scopes = {{"global", 2}};
    options.token = kToken;
    options.max_connections = max_connections;
    options.address_timeout = address_timeout;
    server_ = HorovodServer::create(io_.get_executor(), std::move(options));
    port_ = server_->listen("127.0.0.1").value_or(-1);
    thread_ = std::thread([this] { io_.run(); });
  }
  ~HorovodServerThread() {
    if (thread_.joinable()) stop();
  }
  void stop() {
    asio::post(io_, [this] {
      server_->stop();
      asio::co_spawn(io_, server_->join(), [this](std::exception_ptr) { work_.reset(); });
    });
    thread_.join();
  }
  int port() const { return port_; }
  std::size_t n_connections() {
    std::promise<std::size_t> n;
    asio::post(io_, [&] { n.set_value(server_->n_connections()); });
    return n.get_future().get();
  }

 private:
  asio::io_context io_;
  asio::executor_work_guard<asio::io_context::executor_type> work_;
  std::unique_ptr<HorovodServer> server_;
  int port_ = -1;
  std::thread thread_;
};

Fd connected(const HorovodServerThread& server) {
  BlockingDeadline deadline = SteadyClock::now() + 10s;
  auto fd = connect_tcp("127.0.0.1", server.port(), deadline);
  EXPECT_TRUE(fd) << fd.error().message();
  return fd ? std::move(*fd) : Fd();
}

// Has begun a request: the kernel hands it over at once.
Fd stranger(const HorovodServerThread& server) {
  BlockingDeadline deadline = SteadyClock::now() + 10s;
  Fd fd = connected(server);
  EXPECT_TRUE(send_all(fd.get(), "G", deadline));
  return fd;
}

void send(const Fd& fd, const std::string& method, const std::string& target, const std::string& body = "") {
  BlockingDeadline deadline = SteadyClock::now() + 10s;
  const std::string bytes = method + " /" + target +
                            " HTTP/1.1\r\nHost: a\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" +
                            body;
  EXPECT_TRUE(send_all(fd.get(), bytes, deadline));
}

// Everything until the server closes.
std::string read_to_end(const Fd& fd) {
  std::string out;
  BlockingDeadline deadline = SteadyClock::now() + 10s;
  for (;;) {
    const auto byte = receive_exactly(fd.get(), 1, deadline);
    if (!byte) {
      EXPECT_EQ(byte.error().code, Errc::kClosed) << byte.error().message();
      return out;
    }
    out += *byte;
  }
}

// Returns the status and the body of the answer: "200 abc".
std::string answer_of(const Fd& fd) {
  const std::string all = read_to_end(fd);
  const auto body = all.find("\r\n\r\n");
  if (all.size() < 12 || body == std::string::npos) return "no answer: " + all;
  return all.substr(9, 3) + " " + all.substr(body + 4);
}

std::string ask(const HorovodServerThread& server, const std::string& method, const std::string& target,
                const std::string& body = "") {
  const Fd fd = connected(server);
  send(fd, method, target, body);
  return answer_of(fd);
}

TEST(HorovodServer, ServesAStartOfTwoRanks) {
  HorovodServerThread server;
  const std::string large(200'000, '\0');
  EXPECT_EQ(ask(server, "GET", "secret:1/global/rank_0"), "404 ");
  EXPECT_EQ(ask(server, "PUT", "secret:1/global/rank_0", "node"), "200 ");
  EXPECT_EQ(ask(server, "GET", "secret:1/global/rank_0"), "200 node");
  EXPECT_EQ(ask(server, "PUT", "secret:1/global/0", large), "200 ");
  EXPECT_EQ(ask(server, "PUT", "secret:1/global/1", ""), "200 ");
  EXPECT_EQ(ask(server, "GET", "secret:1/global/0"), "200 " + large);
  EXPECT_EQ(ask(server, "GET", "secret:1/global/1"), "200 ");
  EXPECT_EQ(ask(server, "DELETE", "secret:1/global/1"), "200 ");
  EXPECT_EQ(ask(server, "GET", "secret:1/global/rank_0"), "200 node");
  EXPECT_EQ(ask(server, "DELETE", "secret:1/global/0"), "200 ");
  EXPECT_EQ(ask(server, "GET", "secret:1/global/rank_0"), "404 ");
}

TEST(HorovodServer, AnswersWhenAnAddressIsThere) {
  HorovodServerThread server;
  const Fd first = connected(server), second = connected(server);
  send(first, "GET", "secret:1/global/1");
  send(second, "GET", "secret:1/global/1");
  while (server.n_connections() < 2) std::this_thread::yield();
  EXPECT_EQ(ask(server, "PUT", "secret:1/global/1", "address"), "200 ");
  EXPECT_EQ(answer_of(first), "200 address");
  EXPECT_EQ(answer_of(second), "200 address");
}

TEST(HorovodServer, WaitsForAnAddressForALimitedTime) {
  HorovodServerThread server(100, 10ms);
  EXPECT_EQ(ask(server, "GET", "secret:1/global/0"), "404 ");
}

TEST(HorovodServer, TellsNothingWithoutTheToken) {
  HorovodServerThread server;
  EXPECT_EQ(ask(server, "PUT", "secret:1/global/0", "address"), "200 ");
  EXPECT_EQ(ask(server, "GET", "global/0"), "403 ");
  EXPECT_EQ(ask(server, "GET", "guess:1/global/0"), "403 ");
  EXPECT_EQ(ask(server, "PUT", "guess:1/global/0", "mine"), "403 ");
  EXPECT_EQ(ask(server, "GET", "secret:1/global/0"), "200 address");
}

TEST(HorovodServer, ClosesTheOldestStrangerForOneMore) {
  HorovodServerThread server(3);
  std::vector<Fd> silent;
  for (int i = 0; i < 3; ++i) silent.push_back(stranger(server));
  while (server.n_connections() < 3) std::this_thread::yield();
  EXPECT_EQ(ask(server, "PUT", "secret:1/global/0", "address"), "200 ");
  EXPECT_EQ(server.n_connections(), 2U) << "not only after its time";
  EXPECT_EQ(read_to_end(silent[0]), "");
  EXPECT_EQ(ask(server, "GET", "secret:1/global/0"), "200 address");
}

TEST(HorovodServer, RefusesOneMoreWhereAllHaveShownTheToken) {
  HorovodServerThread server(2);
  std::vector<Fd> waiting;
  for (int i = 0; i < 2; ++i) {
    waiting.push_back(connected(server));
    send(waiting.back(), "GET", "secret:1/global/1");
  }
  while (server.n_connections() < 2) std::this_thread::yield();
  for (int i = 0; i < 20; ++i) server.n_connections();  // each lets the server read what has come
  EXPECT_EQ(read_to_end(stranger(server)), "");
  EXPECT_EQ(server.n_connections(), 2U);
}

TEST(HorovodServer, StopsWhileClientsWait) {
  HorovodServerThread server;
  const Fd waits = connected(server), is_silent = stranger(server), is_cut = connected(server);
  send(waits, "GET", "secret:1/global/1");
  BlockingDeadline deadline = SteadyClock::now() + 10s;
  EXPECT_TRUE(send_all(is_cut.get(), "PUT /secret:1/global/0 HTTP/1.1\r\nContent-Length: 9\r\n\r\nabc", deadline));
  while (server.n_connections() < 3) std::this_thread::yield();
  const auto begin = SteadyClock::now();
  server.stop();
  EXPECT_LT(SteadyClock::now() - begin, 10s);
  EXPECT_EQ(read_to_end(is_silent), "");
}

TEST(HorovodServer, MakesTokensThatDiffer) {
  const std::string one = make_horovod_token();
  EXPECT_EQ(one.size(), 32U);
  EXPECT_EQ(one.find_first_not_of("0123456789abcdef"), std::string::npos);
  EXPECT_NE(one, make_horovod_token());
}

}  // namespace
}  // namespace drun::rendezvous
