#include "transport/ssh_agent.h"

#include <libssh/libssh.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <array>
#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>
#include <cerrno>
#include <cstdint>

#include "base/bytes.h"
#include "base/clean_text.h"
#include "transport/sha1.h"

namespace drun::transport {
namespace {

using Socket = asio::local::stream_protocol::socket;

// https://datatracker.ietf.org/doc/html/draft-miller-ssh-agent
constexpr std::uint8_t kFailure = 5, kRequestIdentities = 11, kIdentitiesAnswer = 12, kSignRequest = 13,
                       kSignResponse = 14;
constexpr std::uint32_t kMaxMessage = 256 * 1024;
constexpr auto kListTimeout = std::chrono::seconds(5);

Task<Result<std::string>> receive(Socket& socket) {
  std::array<char, 4> head;
  auto [ec, n] = co_await asio::async_read(socket, asio::buffer(head), as_result);
  if (ec) co_return fail(asio_error(ec, "ssh-agent"));
  const std::uint32_t length = ByteReader(std::string_view(head.data(), head.size())).u32();
  if (length == 0 || length > kMaxMessage) co_return fail(Errc::kProtocol, "ssh-agent: a message of a wrong size");
  std::string body(length, '\0');
  auto [ec_body, n_body] = co_await asio::async_read(socket, asio::buffer(body), as_result);
  if (ec_body) co_return fail(asio_error(ec_body, "ssh-agent"));
  co_return body;
}

Task<Result<void>> send(Socket& socket, std::string body) {
  ByteWriter writer;
  writer.str(body);
  const std::string bytes = writer.take();
  auto [ec, n] = co_await asio::async_write(socket, asio::buffer(bytes), as_result);
  if (ec) co_return fail(asio_error(ec, "ssh-agent"));
  co_return Result<void>{};
}

// Sends one request to ssh-agent, on a connection of its own.
Task<Result<std::string>> ask(asio::io_context& io, std::string path, std::string question, Deadline deadline) {
  Socket socket(io);
  DeadlineGuard guard(io.get_executor(), deadline, [&socket] {
    boost::system::error_code ignored;
    socket.close(ignored);
  });
  if (path.size() >= sizeof(sockaddr_un{}.sun_path)) co_return fail(Errc::kIo, "ssh-agent: path too long");
  const asio::local::stream_protocol::endpoint endpoint(path);
  auto [ec] = co_await socket.async_connect(endpoint, as_result);
  if (ec) co_return fail(asio_error(ec, "ssh-agent"));
  auto sent = co_await send(socket, std::move(question));
  if (!sent) co_return fail(sent.error());
  co_return co_await receive(socket);
}

bool libssh_knows(const SshAgentKey& key) {
  ByteReader reader(key.blob);
  const std::string type = reader.str();
  const auto kind = ssh_key_type_from_name(type.c_str());
  if (!reader.ok() || kind == SSH_KEYTYPE_UNKNOWN) return false;
  ssh_key parsed = nullptr;
  if (ssh_pki_import_pubkey_base64(base64(key.blob).c_str(), kind, &parsed) != SSH_OK) return false;
  ssh_key_free(parsed);
  return true;
}

std::string identities_answer(const std::vector<SshAgentKey>& keys) {
  ByteWriter writer;
  writer.u8(kIdentitiesAnswer);
  writer.u32(static_cast<std::uint32_t>(keys.size()));
  for (const auto& key : keys) {
    writer.str(key.blob);
    writer.str(key.comment);
  }
  return writer.take();
}

}  // namespace

Task<std::vector<SshAgentKey>> SshAgents::keys(std::string socket_path) {
  auto& slot = listings_[socket_path];
  if (slot) {
    const auto listing = slot;
    co_await listing->ready.wait();  // bounded by the deadline of the first caller
    co_return listing->keys;
  }
  slot = std::make_shared<Listing>(io_.get_executor());
  const auto listing = slot;
  std::string question(1, static_cast<char>(kRequestIdentities));
  auto answer = co_await ask(io_, socket_path, std::move(question), Clock::now() + kListTimeout);
  if (answer) {
    ByteReader reader(*answer);
    if (reader.u8() == kIdentitiesAnswer) {
      const std::size_t n = reader.count(8);
      for (std::size_t i = 0; i < n && reader.ok(); ++i) {
        SshAgentKey key;
        key.blob = reader.str();
        key.comment = reader.str();
        if (reader.ok() && libssh_knows(key)) listing->keys.push_back(std::move(key));
      }
    }
  }
  listing->ready.notify();
  co_return listing->keys;
}

SshAgentFilter::SshAgentFilter(asio::io_context& io, std::string socket_path, std::vector<SshAgentKey> offered)
    : io_(io),
      socket_path_(std::move(socket_path)),
      offered_(std::move(offered)),
      ours_(io),
      tasks_(io.get_executor()) {}

Result<Fd> SshAgentFilter::start(Deadline deadline) {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return fail(errno_error(errno, "socketpair"));
  Fd theirs(ends[1]);
  ours_.assign(asio::local::stream_protocol(), ends[0]);
  tasks_.spawn(serve(deadline));
  return theirs;
}

void SshAgentFilter::stop() {
  boost::system::error_code ignored;
  ours_.close(ignored);
}

// The server has refused those before it.
void SshAgentFilter::drop_through(const std::string& blob) {
  const auto key =
      std::find_if(offered_.begin(), offered_.end(), [&](const SshAgentKey& one) { return one.blob == blob; });
  if (key == offered_.end()) return;
  refused_.push_back(key->comment.empty() ? "a key" : clean_line(key->comment));
  offered_.erase(offered_.begin(), key + 1);
}

Task<void> SshAgentFilter::serve(Deadline deadline) {
  DeadlineGuard guard(io_.get_executor(), deadline, [this] { stop(); });
  for (;;) {
    auto request = co_await receive(ours_);
    if (!request) break;
    std::string reply(1, static_cast<char>(kFailure));
    const auto type = static_cast<std::uint8_t>(request->front());
    if (type == kRequestIdentities) {
      reply = identities_answer(offered_);
    } else if (type == kSignRequest) {
      const std::string blob = ByteReader(std::string_view(*request).substr(1)).str();
      auto answer = co_await ask(io_, socket_path_, std::move(*request), deadline);
      if (answer && static_cast<std::uint8_t>(answer->front()) == kSignResponse) {
        reply = std::move(*answer);
      } else if (answer) {
        drop_through(blob);
      }
    }
    auto sent = co_await send(ours_, std::move(reply));
    if (!sent) break;
  }
  stop();
}

}  // namespace drun::transport
