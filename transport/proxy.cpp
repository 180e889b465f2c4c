#include "transport/proxy.h"

#include <sys/socket.h>

#include <array>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <cerrno>
#include <cstdlib>
#include <string_view>

#include "base/text.h"
#include "transport/text_tail.h"

namespace drun::transport {
namespace {

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
  std::vector<std::string> words = {"ssh", "-oBatchMode=yes", "-oClearAllForwardings=yes", "-oControlMaster=no",
                                    "-oControlPath=none"};
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

std::string Proxy::stderr_text() const {
  const std::string text = impl_->tail.str();
  std::string_view rest = trim(text);
  while (!rest.empty() && rest.back() == '\n') rest = trim(rest.substr(0, rest.size() - 1));
  const auto line = rest.rfind('\n');
  return std::string(trim(line == std::string_view::npos ? rest : rest.substr(line + 1)));
}

// ssh writes this line first, and "Connection closed by ..." after it.
bool Proxy::was_dropped() const { return impl_->tail.str().find("kex_exchange_identification: ") != std::string::npos; }

Task<void> Proxy::settle() { co_await stderr_done_.wait_until(Clock::now() + kSettle); }

Task<void> Proxy::join() {
  co_await child_->join();
  co_await settle();
  boost::system::error_code ignored;
  impl_->err.close(ignored);
  co_await tasks_.join();
}

}  // namespace drun::transport
