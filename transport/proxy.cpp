#include "transport/proxy.h"

#include <sys/socket.h>

#include <array>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <cerrno>
#include <cstdlib>
#include <string_view>

#include "base/clean_text.h"
#include "base/text.h"
#include "transport/backoff.h"
#include "transport/text_tail.h"

namespace drun::transport {
namespace {

constexpr std::size_t kMaxWords = 10;  // lines
constexpr auto kSettle = std::chrono::milliseconds(500);

bool given(const std::string& value) { return !value.empty() && value != "none"; }

std::string user_shell() {
  const char* shell = ::getenv("SHELL");
  return shell != nullptr && *shell != '\0' ? shell : "/bin/sh";
}

}  // namespace

struct Proxy::Impl {
  Impl(asio::io_context& io, int fd) : err(io, fd) {}
  asio::posix::stream_descriptor err;
  TextTail tail;
};

std::vector<std::string> Proxy::command_for(const SshTarget& target) {
  if (given(target.proxy_command)) return {user_shell(), "-c", "exec " + target.proxy_command};
  const JumpHost& jump = target.last_jump;
  if (jump.host.empty()) return {};
  // says_dropped() and errors need the words of LogLevel INFO.
  std::vector<std::string> words = {"ssh",
                                    "-oBatchMode=yes",
                                    "-oClearAllForwardings=yes",
                                    "-oControlMaster=no",
                                    "-oControlPath=none",
                                    "-oLogLevel=INFO"};
  const auto add = [&words](const char* option, const std::string& value) {
    if (!value.empty()) words.insert(words.end(), {option, value});
  };
  // OpenSSH ignores later values, those of the config among them.
  if (target.jump_host_keys != HostKeyPolicy::kStrict) words.emplace_back("-oStrictHostKeyChecking=accept-new");
  add("-F", target.config_file);
  add("-J", target.first_jumps);
  add("-W", host_port(target.host_name, target.port));
  if (jump.uri.empty()) {
    add("-l", jump.user);
    add("-p", jump.port);
  }
  words.insert(words.end(), {"--", jump.uri.empty() ? jump.host : jump.uri});
  return words;
}

Result<std::unique_ptr<Proxy>> Proxy::start(asio::io_context& io, const std::vector<std::string>& command, Fd& socket) {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return fail(errno_error(errno, "socketpair"));
  Fd ours(ends[0]);
  Fd theirs(ends[1]);
  auto err = make_pipe();
  if (!err) return fail(err.error());
  auto child = ChildProcess::start(io, command, theirs.get(), theirs.get(), err->write.get(), true);
  if (!child) return fail(child.error());
  std::unique_ptr<Proxy> proxy(new Proxy(io, std::move(*child), std::move(err->read)));
  socket = std::move(ours);
  return proxy;
}

Proxy::Proxy(asio::io_context& io, std::unique_ptr<ChildProcess> child, Fd err)
    : child_(std::move(child)),
      impl_(std::make_shared<Impl>(io, err.release())),
      stderr_done_(io.get_executor()),
      tasks_(io.get_executor()) {
  tasks_.spawn(drain_stderr());
}

Task<void> Proxy::drain_stderr() {
  std::array<char, 1024> buffer;
  for (;;) {
    auto [ec, n] = co_await impl_->err.async_read_some(asio::buffer(buffer), as_result);
    if (ec) break;
    impl_->tail.append(std::string_view(buffer.data(), n));
  }
  stderr_done_.notify();
}

void Proxy::end() { child_->end(); }

std::vector<std::string> Proxy::words() const {
  std::vector<std::string> out;
  const std::string text = impl_->tail.str();
  for (const auto line : split(text, '\n')) {
    if (!trim(line).empty()) out.push_back(clean_line(trim(line)));
  }
  if (out.size() > kMaxWords) out.erase(out.begin(), out.end() - static_cast<std::ptrdiff_t>(kMaxWords));
  return out;
}

bool Proxy::was_dropped() const { return says_dropped(impl_->tail.str()); }

Task<void> Proxy::settle() {
  const Deadline deadline = Clock::now() + kSettle;
  co_await stderr_done_.wait_until(deadline);
  co_await child_->wait_until(deadline);
}

Task<void> Proxy::join() {
  co_await child_->join();
  co_await settle();
  boost::system::error_code ignored;
  impl_->err.close(ignored);
  co_await tasks_.join();
}

}  // namespace drun::transport
