// The agent's question to NCCL's RAS service about a job's ranks, answered by the test's own server on loopback.
#include "agent/nccl_ras_client.h"

#include <gtest/gtest.h>

#include <boost/asio/read_until.hpp>
#include <boost/asio/streambuf.hpp>
#include <boost/asio/write.hpp>
#include <functional>
#include <istream>
#include <thread>

namespace drun::agent {
namespace {

using asio::ip::tcp;
using std::chrono::milliseconds;

// Accepts one connection on a thread of its own and calls `with` with it.
class Server {
 public:
  explicit Server(std::function<void(tcp::socket&)> with)
      : acceptor_(io_, tcp::endpoint(asio::ip::address_v4::loopback(), 0)), thread_([this, with = std::move(with)] {
          tcp::socket one(io_);
          boost::system::error_code failed;
          acceptor_.accept(one, failed);
          if (!failed) with(one);
        }) {}
  ~Server() {
    boost::system::error_code ignored;
    tcp::socket(io_).connect(acceptor_.local_endpoint(), ignored);  // unblocks accept() if no client came
    thread_.join();
  }
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;
  std::string address() const { return "localhost:" + std::to_string(acceptor_.local_endpoint().port()); }

 private:
  asio::io_context io_;
  tcp::acceptor acceptor_;
  std::thread thread_;
};

std::string line_of(tcp::socket& socket) {
  asio::streambuf buffer;
  boost::system::error_code failed;
  asio::read_until(socket, buffer, '\n', failed);
  std::istream lines(&buffer);
  std::string line;
  std::getline(lines, line);
  return line;
}

void say(tcp::socket& socket, const std::string& text) {
  boost::system::error_code failed;
  asio::write(socket, asio::buffer(text), failed);
}

Task<void> keep(NcclRasClient& question, std::string address, milliseconds time, std::string& answer) {
  answer = co_await question.ask(std::move(address), Clock::now() + time);
}

struct Answer {
  std::string text;
  milliseconds took;
};

Answer ask(const std::string& address, milliseconds time = milliseconds(20'000), milliseconds stop_after = {}) {
  asio::io_context io(1);
  NcclRasClient question(io.get_executor());
  TaskGroup group(io.get_executor());
  std::string answer = "none";
  group.spawn(keep(question, address, time, answer));
  Timer timer(io);
  if (stop_after.count() > 0) {
    timer.expires_after(stop_after);
    timer.async_wait([&](const boost::system::error_code&) { question.stop(); });
  }
  const auto began = Clock::now();
  io.run_for(std::chrono::seconds(30));
  return {answer, std::chrono::duration_cast<milliseconds>(Clock::now() - began)};
}

TEST(Ras, ItsTextIsTakenWhole) {
  std::string question;
  const Server server([&](tcp::socket& one) {
    question = line_of(one);
    say(one, "NCCL version 2.28.9 compiled with CUDA 13.0\r\n");
    std::this_thread::sleep_for(milliseconds(50));  // NCCL asks its ranks meanwhile
    say(one, "Job summary\n\x1b[31mred\n");
  });
  EXPECT_EQ(ask(server.address()).text, "NCCL version 2.28.9 compiled with CUDA 13.0\nJob summary\n?[31mred\n");
  EXPECT_EQ(question, "status");
}

TEST(Ras, NobodyThereIsNoText) {
  int port = 0;
  {
    asio::io_context io;
    tcp::acceptor gone(io, tcp::endpoint(asio::ip::address_v4::loopback(), 0));
    port = gone.local_endpoint().port();
  }
  EXPECT_EQ(ask("localhost:" + std::to_string(port)).text, "");
}

TEST(Ras, OnlyThisHostIsAsked) {
  for (const char* address :
       {"", "localhost", "localhost:", "localhost:0", "localhost:99999", "192.0.2.1:28028", "a b:1"}) {
    const auto answer = ask(address);
    EXPECT_EQ(answer.text, "") << address;
    EXPECT_LT(answer.took, milliseconds(5000)) << address;
  }
}

TEST(Ras, AnotherServiceIsNotQuoted) {
  const Server server([](tcp::socket& one) { say(one, "SSH-2.0-OpenSSH_9.2\r\n"); });
  EXPECT_EQ(ask(server.address()).text, "");
}

TEST(Ras, TextWithoutAnEndIsCutOff) {
  const Server server([](tcp::socket& one) {
    (void)line_of(one);
    say(one, "NCCL version 2.28.9\n" + std::string(1u << 20, 'x'));
  });
  const std::string text = ask(server.address()).text;
  EXPECT_EQ(text.size(), NcclRasClient::kMaxText + std::string("\n(cut off)\n").size());
  EXPECT_TRUE(text.ends_with("xxx\n(cut off)\n"));
}

TEST(Ras, WhatCameUntilTheDeadlineIsKept) {
  const Server server([](tcp::socket& one) {
    (void)line_of(one);
    say(one, "NCCL version 2.28.9\n");
    (void)line_of(one);  // waits until the client closes
  });
  const auto answer = ask(server.address(), milliseconds(2000));
  EXPECT_EQ(answer.text, "NCCL version 2.28.9\n\n(cut off)\n");
  EXPECT_GE(answer.took, milliseconds(2000));
}

TEST(Ras, StopEndsIt) {
  const Server server([](tcp::socket& one) {
    (void)line_of(one);
    (void)line_of(one);
  });
  const auto answer = ask(server.address(), milliseconds(25'000), milliseconds(50));
  EXPECT_EQ(answer.text, "");
  EXPECT_LT(answer.took, milliseconds(10'000));
}

}  // namespace
}  // namespace drun::agent
