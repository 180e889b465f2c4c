#include "transport/tcp_connect.h"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <netdb.h>

#include <condition_variable>
#include <mutex>

#include "transport/helper_pool.h"

namespace {

// Names that end in ".silent" get no answer before it is released.
class NameServer {
 public:
  void be_silent() { set(false); }
  void answer() { set(true); }
  void wait_for_answer() {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [this] { return answers_; });
  }

 private:
  void set(bool answers) {
    const std::lock_guard<std::mutex> lock(mutex_);
    answers_ = answers;
    changed_.notify_all();
  }
  std::mutex mutex_;
  std::condition_variable changed_;
  bool answers_ = true;
};

NameServer& name_server() {
  static NameServer server;
  return server;
}

}  // namespace

// Replaces libc's in all of this program.
extern "C" int getaddrinfo(const char* name, const char* service, const addrinfo* hints, addrinfo** out) {
  using Function = int (*)(const char*, const char*, const addrinfo*, addrinfo**);
  static const auto real = reinterpret_cast<Function>(::dlsym(RTLD_NEXT, "getaddrinfo"));
  const std::string_view text = name == nullptr ? "" : name;
  const bool is_silent = text.size() > 7 && text.substr(text.size() - 7) == ".silent";
  if (is_silent && (hints->ai_flags & AI_NUMERICHOST) == 0) {
    name_server().wait_for_answer();
    return real("127.0.0.1", service, hints, out);
  }
  return real(name, service, hints, out);
}

namespace drun::transport {
namespace {

using std::chrono::milliseconds;

class Lookups : public ::testing::Test {
 protected:
  Lookups() { name_server().be_silent(); }
  ~Lookups() override { name_server().answer(); }

  static Task<void> keep(asio::thread_pool& helper, std::string name, Deadline deadline, Result<TcpEndpoints>& out) {
    TcpTarget target(std::move(name), 22);
    target.family = "inet";
    out = co_await look_up(helper, std::move(target), deadline);
  }
};

TEST_F(Lookups, DoNotWaitForNamesWithoutAnAnswer) {
  constexpr std::size_t kSilent = 12;
  asio::io_context io(1);
  HelperPool helper;
  const Deadline late = Clock::now() + std::chrono::seconds(60);
  std::vector<Result<TcpEndpoints>> found(kSilent);
  TaskGroup group(io.get_executor());
  for (std::size_t i = 0; i < kSilent; ++i) {
    group.spawn(keep(helper.get(), "host" + std::to_string(i) + ".silent", late, found[i]));
  }
  const auto all = [](asio::thread_pool& pool, Deadline deadline, TaskGroup& others) -> Task<void> {
    Result<TcpEndpoints> healthy;
    co_await keep(pool, "localhost", deadline, healthy);
    EXPECT_TRUE(healthy);
    name_server().answer();
    co_await others.join();
  };
  run_on_loop(io, all(helper.get(), late, group));
  for (const auto& one : found) EXPECT_TRUE(one);
}

TEST_F(Lookups, SayWhichNameGotNoAnswerAndWhichHadNoTurn) {
  asio::io_context io(1);
  asio::thread_pool helper(1);
  Result<TcpEndpoints> first, second;
  const auto both = [](asio::thread_pool& pool, Result<TcpEndpoints>& a, Result<TcpEndpoints>& b) -> Task<void> {
    co_await keep(pool, "a.silent", Clock::now() + milliseconds(1000), a);
    co_await keep(pool, "b.silent", Clock::now() + milliseconds(20), b);
  };
  run_on_loop(io, both(helper, first, second));
  name_server().answer();  // the pool waits for its thread
  ASSERT_FALSE(first);
  EXPECT_EQ(first.error().cause.rfind("resolve: no answer for 'a.silent' within ", 0), 0u) << first.error().cause;
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().cause.rfind("resolve: 'b.silent' was not looked up within ", 0), 0u) << second.error().cause;
}

TEST_F(Lookups, MayEndAfterAllElseIsGone) {
  asio::thread_pool helper(1);
  {
    asio::io_context io(1);
    Result<TcpEndpoints> found;
    run_on_loop(io, keep(helper, "a.silent", Clock::now() + milliseconds(300), found));
    EXPECT_FALSE(found);
  }
  name_server().answer();
  helper.join();  // a use of the I/O context is found by the sanitizers
}

}  // namespace
}  // namespace drun::transport
