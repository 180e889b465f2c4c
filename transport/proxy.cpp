#include "transport/proxy.h"

#include <sys/socket.h>

#include <array>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <cerrno>
#include <string_view>

#include "base/text.h"
#include "transport/text_tail.h"

namespace drun::transport {
namespace {

constexpr auto kSettle = std::chrono::milliseconds(500);

bool given(const std::string& value) { return !value.empty() && value != "none"; }

}  // namespace

struct Proxy::Impl {
  Impl(asio::io_context& io, int fd) : err(io, fd) {}
  asio::posix::stream_descriptor err;
  TextTail tail;
};

std::string Proxy::command_for(const SshTarget& target) {
  if (given(target.proxy_command)) return "exec " + target.proxy_command;
  const std::string last = target.last_jump();
  if (last.empty()) return "";
  const std::string before = target.proxy_jump.substr(0, target.proxy_jump.size() - last.size());
  std::string words = "exec ssh -oBatchMode=yes -oClearAllForwardings=yes -oControlMaster=no -oControlPath=none";
  // OpenSSH ignores later values, those of the config among them.
  if (target.jump_host_keys != HostKeyPolicy::kStrict) words += " -oStrictHostKeyChecking=accept-new";
  if (!target.config_file.empty()) words += " -F " + shell_quote(target.config_file);
  if (!before.empty()) words += " -J " + shell_quote(before.substr(0, before.size() - 1));
  const std::string to =
      target.host_name.find(':') == std::string::npos ? target.host_name : "[" + target.host_name + "]";
  words += " -W " + shell_quote(to + ":" + std::to_string(target.port));
  // [user@]host[:port] or ssh://[user@]host[:port]
  return words + " -- " + shell_quote(starts_with(last, "ssh://") ? last : "ssh://" + last);
}

Result<std::unique_ptr<Proxy>> Proxy::start(asio::io_context& io, const std::string& command, Fd& socket) {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return fail(errno_error(errno, "socketpair"));
  Fd ours(ends[0]);
  Fd theirs(ends[1]);
  auto err = make_pipe();
  if (!err) return fail(err.error());
  auto child = ChildProcess::start(io, {"/bin/sh", "-c", command}, theirs.get(), theirs.get(), err->write.get());
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
