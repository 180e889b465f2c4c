#include "rendezvous/agent_socket.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <functional>
#include <string>
#include <thread>

#include "base/bytes.h"
#include "base/fd.h"

namespace drun::rendezvous {
namespace {

using namespace std::chrono_literals;

Handout sample() {
  Handout out;
  out.key = make_job_key();
  out.job_id = "job-7";
  out.rendezvous_address = "fd00::2";
  out.rendezvous_port = 65535;
  out.data_address = "10.0.0.3";
  return out;
}

// A listening socket in a new directory, and a thread that serves one connection.
class FakeAgent {
 public:
  FakeAgent(std::function<void(int)> answer, const std::string& below = "") {
    char pattern[] = "/tmp/drun-test-XXXXXX";
    directory_ = ::mkdtemp(pattern);
    std::filesystem::create_directories(directory_ + below);
    path_ = directory_ + below + "/agent";
    listener_.reset(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    const Fd place(::open((directory_ + below).c_str(), O_PATH | O_CLOEXEC));
    const std::string name = "/proc/self/fd/" + std::to_string(place.get()) + "/agent";
    std::memcpy(address.sun_path, name.data(), name.size());
    EXPECT_EQ(::bind(listener_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    EXPECT_EQ(::listen(listener_.get(), 8), 0);
    thread_ = std::thread([this, answer = std::move(answer)] {
      const Fd fd(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
      if (fd) answer(fd.get());
    });
  }
  ~FakeAgent() {
    ::shutdown(listener_.get(), SHUT_RDWR);
    thread_.join();
    std::filesystem::remove_all(directory_);
  }
  const std::string& path() const { return path_; }

 private:
  std::string directory_, path_;
  Fd listener_;
  std::thread thread_;
};

std::string read_hello(int fd) {
  std::string hello(kWorkerHello.size(), '\0');
  EXPECT_EQ(::recv(fd, hello.data(), hello.size(), MSG_WAITALL), static_cast<ssize_t>(hello.size()));
  return hello;
}

std::string prefixed(const std::string& body) {
  ByteWriter out;
  out.str(body);
  return out.take();
}

TEST(AgentSocket, HandoutSurvives) {
  const Handout sent = sample();
  const auto got = decode_handout(encode_handout(sent));
  ASSERT_TRUE(got);
  EXPECT_EQ(got->key, sent.key);
  EXPECT_EQ(got->job_id, sent.job_id);
  EXPECT_EQ(got->rendezvous_address, sent.rendezvous_address);
  EXPECT_EQ(got->rendezvous_port, sent.rendezvous_port);
  EXPECT_EQ(got->data_address, sent.data_address);
}

TEST(AgentSocket, MalformedHandoutsAreRefused) {
  const std::string good = encode_handout(sample());
  for (std::size_t n = 0; n < good.size(); ++n) EXPECT_FALSE(decode_handout(good.substr(0, n)));
  EXPECT_FALSE(decode_handout(good + "x"));
}

TEST(AgentSocket, WorkerFetchesItsHandoutAndIsKnownToTheAgent) {
  const Handout sent = sample();
  FakeAgent agent([&](int fd) {
    EXPECT_EQ(read_hello(fd), kWorkerHello);
    const auto peer = peer_of(fd);
    ASSERT_TRUE(peer);
    EXPECT_EQ(peer->uid, ::getuid());
    EXPECT_EQ(peer->gid, ::getgid());
    EXPECT_EQ(peer->pid, ::getpid());
    ASSERT_TRUE(write_all(fd, prefixed(encode_handout(sent))));
  });
  const auto got = fetch_handout(agent.path(), 10s);
  ASSERT_TRUE(got) << got.error().message();
  EXPECT_EQ(got->handout.key, sent.key);
  EXPECT_FALSE(got->memory);
}

TEST(AgentSocket, AnyPartOfThePrefixMayBringTheMemory) {
  for (const std::size_t n_first : {1, 4, 20}) {
    FakeAgent agent([&](int fd) {
      read_hello(fd);
      const Fd memory(::memfd_create("test", MFD_CLOEXEC));
      ASSERT_EQ(::write(memory.get(), "shared", 6), 6);
      const std::string bytes = prefixed(encode_handout(sample()));
      ASSERT_EQ(send_with_descriptor(fd, bytes.substr(0, n_first), memory.get()), n_first);
      ASSERT_TRUE(write_all(fd, bytes.substr(n_first)));
    });
    const auto got = fetch_handout(agent.path(), 10s);
    ASSERT_TRUE(got) << got.error().message();
    EXPECT_EQ(got->handout.job_id, sample().job_id);
    ASSERT_TRUE(got->memory);
    char read[6];
    ASSERT_EQ(::pread(got->memory.get(), read, sizeof read, 0), 6);
    EXPECT_EQ(std::string(read, 6), "shared");
    EXPECT_NE(::fcntl(got->memory.get(), F_GETFD) & FD_CLOEXEC, 0);
  }
}

TEST(AgentSocket, TheRecorderComesWithTheHandoutItself) {
  for (const bool with_memory : {false, true}) {
    FakeAgent agent([&](int fd) {
      read_hello(fd);
      const Fd memory(::memfd_create("memory", MFD_CLOEXEC)), recorder(::memfd_create("recorder", MFD_CLOEXEC));
      ASSERT_EQ(::write(recorder.get(), "rec", 3), 3);
      const std::string bytes = prefixed(encode_handout(sample()));
      if (with_memory) {
        ASSERT_EQ(send_with_descriptor(fd, bytes.substr(0, 4), memory.get()), 4u);
      } else {
        ASSERT_TRUE(write_all(fd, bytes.substr(0, 4)));
      }
      ASSERT_EQ(send_with_descriptor(fd, bytes.substr(4), recorder.get()), bytes.size() - 4);
    });
    const auto got = fetch_handout(agent.path(), 10s);
    ASSERT_TRUE(got) << got.error().message();
    EXPECT_EQ(got->handout.job_id, sample().job_id);
    EXPECT_EQ(static_cast<bool>(got->memory), with_memory);
    ASSERT_TRUE(got->recorder);
    char read[3];
    ASSERT_EQ(::pread(got->recorder.get(), read, sizeof read, 0), 3);
    EXPECT_NE(::fcntl(got->recorder.get(), F_GETFD) & FD_CLOEXEC, 0);
  }
}

TEST(AgentSocket, PathMayBeLongerThanASocketAddress) {
  FakeAgent agent(
      [&](int fd) {
        read_hello(fd);
        ASSERT_TRUE(write_all(fd, prefixed(encode_handout(sample()))));
      },
      "/" + std::string(100, 'd') + "/" + std::string(100, 'e'));
  ASSERT_GT(agent.path().size(), sizeof(sockaddr_un::sun_path));
  const auto got = fetch_handout(agent.path(), 10s);
  EXPECT_TRUE(got) << got.error().message();
}

TEST(AgentSocket, UnusablePathsAreErrorsThatNameThem) {
  const std::string too_long = "/tmp/" + std::string(200, 'x');
  for (const std::string& path : {std::string("/tmp/drun-no-such-socket"), std::string(""), too_long,
                                  "/no/such/" + std::string(150, 'x') + "/agent", std::string("/tmp/a\0b", 8)}) {
    const auto got = fetch_handout(path, 1s);
    ASSERT_FALSE(got) << path;
    EXPECT_NE(got.error().context.find(path), std::string::npos);
  }
}

TEST(AgentSocket, RefusalIsTold) {
  FakeAgent agent([](int fd) { read_hello(fd); });
  const auto got = fetch_handout(agent.path(), 10s);
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().code, Errc::kAuth);
}

TEST(AgentSocket, SilentAgentTimesOut) {
  FakeAgent agent([](int fd) {
    read_hello(fd);
    char c;
    EXPECT_EQ(::recv(fd, &c, 1, 0), 0);  // until the worker gives up
  });
  const auto got = fetch_handout(agent.path(), 30ms);
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().code, Errc::kTimeout);
}

TEST(AgentSocket, OversizedOrCutHandoutIsRefused) {
  {
    FakeAgent agent([](int fd) {
      read_hello(fd);
      ASSERT_TRUE(write_all(fd, std::string("\x7f\xff\xff\xff", 4)));
    });
    EXPECT_EQ(fetch_handout(agent.path(), 10s).error().code, Errc::kProtocol);
  }
  FakeAgent agent([](int fd) {
    read_hello(fd);
    ASSERT_TRUE(write_all(fd, prefixed(encode_handout(sample())).substr(0, 20)));
  });
  EXPECT_EQ(fetch_handout(agent.path(), 10s).error().code, Errc::kClosed);
}

}  // namespace
}  // namespace drun::rendezvous
