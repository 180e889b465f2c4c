// A real sshd of the test's own on 127.0.0.1, with keys, known_hosts and an ssh config in a temporary folder.
#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/asio.h"
#include "tests/temp_folder.h"
#include "transport/ssh_config.h"
#include "transport/transport.h"

namespace drun::transport::testing {

using drun::testing::TempFolder;

// A process that ends with the test in any case.
class Daemon {
 public:
  explicit Daemon(const std::vector<std::string>& argv, const std::string& log_file = "/dev/null");
  ~Daemon();
  pid_t pid() const { return pid_; }
  void kill_now();

 private:
  pid_t pid_ = -1;
};

// Runs a command to its end and returns its stdout. The test fails if the command fails.
std::string output_of(const std::string& shell_command);
int free_port();

class Sshd {
 public:
  // `extra` are lines of sshd_config.
  explicit Sshd(const std::string& extra = "");
  int port() const { return port_; }
  const TempFolder& folder() const { return folder_; }
  std::string key() const { return folder_.path("user_key"); }
  std::string known_hosts() const { return folder_.path("known_hosts"); }
  std::string host_key_line() const;  // "type base64"
  void restart_with_new_host_key(const std::string& type = "ed25519");
  // Kills the processes that serve connections, and the listener, as if the host had vanished with a reset.
  void kill_everything();
  std::string log() const { return folder_.read("sshd.log"); }

  // An ssh config with `Host box` for this server; `lines` come first, so they win.
  std::string config(const std::string& lines = "") const;
  SshTarget target(const std::string& lines = "", const std::string& alias = "box") const;
  // "ProxyCommand ..." that relays to the server as `nc` does; `first` is Python code that runs before it connects.
  std::string proxy_command(const std::string& first = "") const;

 private:
  void start();

  TempFolder folder_;
  int port_ = 0;
  std::string extra_;
  std::unique_ptr<Daemon> daemon_;
};

// An io_context, a helper pool and the notices of the transports.
struct Loop {
  asio::io_context io;
  asio::thread_pool helper{2};
  std::vector<std::string> notices;

  std::unique_ptr<Transport> libssh();
  std::unique_ptr<Transport> openssh();
  // Runs a coroutine to its end, at most 60 s, and returns its result.
  template <typename T>
  T run(Task<T> task) {
    std::optional<T> result;
    asio::co_spawn(io, std::move(task), [&result](std::exception_ptr e, T value) {
      if (e) std::rethrow_exception(e);
      result.emplace(std::move(value));
    });
    io.restart();
    const auto deadline = Clock::now() + std::chrono::seconds(60);
    while (!result && Clock::now() < deadline && io.run_one_until(deadline) > 0) {
    }
    if (!result) std::abort();  // a coroutine must not outlive its test
    return std::move(*result);
  }
  Result<std::unique_ptr<Channel>> open(Transport& transport, const SshTarget& target, const std::string& command,
                                        std::chrono::milliseconds limit = std::chrono::seconds(20));
};

struct Outcome {
  std::string out;
  int exit_status = -1;
  std::string err;
  std::string error;  // of reading or writing
};

// Writes `input` and closes stdin, while it reads to the end. Closes and joins the channel.
Task<Outcome> converse(asio::io_context& io, std::unique_ptr<Channel> channel, std::string input);

}  // namespace drun::transport::testing
