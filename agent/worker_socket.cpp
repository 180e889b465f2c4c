#include "agent/worker_socket.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <utility>
#include <vector>

#include "agent/life_lock.h"
#include "base/bytes.h"
#include "rendezvous/agent_socket.h"

namespace drun::agent {

namespace {
constexpr auto kHelloTimeout = std::chrono::seconds(5);
constexpr std::size_t kPathLimit = 107;  // sun_path
constexpr std::size_t kPrefix = 4;       // bytes of the handout's length

// Sends without blocking. Returns the number of bytes sent.
std::size_t send_part(asio::local::stream_protocol::socket& socket, std::string_view bytes, int descriptor) {
  if (descriptor >= 0) return rendezvous::send_with_descriptor(socket.native_handle(), bytes, descriptor);
  const ssize_t n = ::send(socket.native_handle(), bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  return n > 0 ? static_cast<std::size_t>(n) : 0;
}

bool is_own(const std::string& directory) {
  struct stat s {};
  return directory[0] == '/' && ::lstat(directory.c_str(), &s) == 0 && S_ISDIR(s.st_mode) && s.st_uid == ::geteuid();
}

// Locks the directory before it has a socket: between bind and listen the socket does not answer.
std::optional<Fd> make_directory(const std::string& pattern, std::string& made) {
  for (int i = 0; i < kMakerTries; ++i) {
    made = pattern;
    if (::mkdtemp(made.data()) == nullptr) return std::nullopt;
    if (auto lock = lock_as_maker(made)) return lock;
    ::rmdir(made.c_str());
  }
  return std::nullopt;
}
}  // namespace

WorkerSocket::WorkerSocket(asio::io_context& io) : acceptor_(io), sessions_(io.get_executor()) {}

Result<std::unique_ptr<WorkerSocket>> WorkerSocket::create(asio::io_context& io, const std::string& job_id) {
  std::unique_ptr<WorkerSocket> socket(new WorkerSocket(io));
  std::vector<std::string> places = {"/tmp", "/var/tmp", "/dev/shm"};
  if (const char* run = std::getenv("XDG_RUNTIME_DIR"); run != nullptr && is_own(run)) places.emplace_back(run);
  std::string tried;
  for (const auto& place : places) {
    const std::string pattern = place + "/drun-" + job_id.substr(0, 12) + "-XXXXXX";
    std::string name;
    auto lock = path_in(pattern).size() > kPathLimit ? std::nullopt : make_directory(pattern, name);
    if (!lock) {
      tried += (tried.empty() ? "" : ", ") + place;
      continue;
    }
    socket->lock_ = std::move(*lock);
    socket->directory_ = name;
    socket->path_ = path_in(name);
    boost::system::error_code ec;
    const asio::local::stream_protocol::endpoint endpoint(socket->path_);
    socket->acceptor_.open(endpoint.protocol(), ec);
    if (!ec) socket->acceptor_.bind(endpoint, ec);
    if (!ec) socket->acceptor_.listen(1024, ec);
    if (!ec) return socket;
    tried += (tried.empty() ? "" : ", ") + place + " (" + ec.message() + ")";  // a file system without sockets
    boost::system::error_code ignored;
    socket->acceptor_.close(ignored);
    socket->lock_ = Fd();
    ::unlink(socket->path_.c_str());
    ::rmdir(std::exchange(socket->directory_, {}).c_str());
  }
  return fail(Errc::kIo, "no place for the worker socket (tried " + tried + ")");
}

WorkerSocket::~WorkerSocket() {
  if (!directory_.empty() && !is_kept_) remove_socket_directory(directory_);
}

bool remove_socket_directory(const std::string& directory) {
  std::error_code ignored;
  std::filesystem::remove_all(directory, ignored);
  return ::access(directory.c_str(), F_OK) != 0;
}

void WorkerSocket::share_memory(Missing missing, MakeMemory make) {
  missing_ = std::move(missing);
  make_memory_ = std::move(make);
}

void WorkerSocket::make_memory() {
  auto made = std::exchange(make_memory_, nullptr)();
  if (made && ::fcntl(made->get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_SEAL) != 0) {
    made = fail(errno_error(errno, "F_ADD_SEALS"));
  }
  if (made) {
    memory_ = std::move(*made);
  } else {
    missing_(made.error());
  }
}

void WorkerSocket::stop() {
  boost::system::error_code ignored;
  acceptor_.close(ignored);
}

Task<void> WorkerSocket::run() {
  while (acceptor_.is_open()) {
    auto [ec, socket] = co_await acceptor_.async_accept(as_result);
    if (ec == asio::error::operation_aborted || ec == asio::error::bad_descriptor) break;
    if (ec) {
      co_await sleep_until(Clock::now() + std::chrono::milliseconds(50));  // out of descriptors: retry later
      continue;
    }
    ucred peer{};
    socklen_t size = sizeof peer;
    if (::getsockopt(socket.native_handle(), SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0 || peer.uid != ::getuid()) {
      continue;
    }
    sessions_.spawn(serve(std::move(socket)));
  }
  co_await sessions_.join();
}

Task<void> WorkerSocket::serve(asio::local::stream_protocol::socket socket) {
  const DeadlineGuard guard(acceptor_.get_executor(), Clock::now() + kHelloTimeout, [&socket] {
    boost::system::error_code ignored;
    socket.close(ignored);
  });
  std::array<char, rendezvous::kWorkerHello.size()> hello{};
  const auto in = asio::buffer(hello);
  const auto [read_ec, n_read] = co_await asio::async_read(socket, in, as_result);
  if (read_ec || std::string_view(hello.data(), hello.size()) != rendezvous::kWorkerHello) co_return;
  ByteWriter out;
  out.str(handout_);
  if (make_memory_) make_memory();
  const Fd recorder = recorders_ != nullptr ? recorders_->make() : Fd();
  // A descriptor arrives with the first byte of its message: the memory with the length, the recorder with the rest.
  const std::string_view bytes = out.bytes();
  std::size_t n_sent = send_part(socket, bytes.substr(0, kPrefix), memory_.get());
  if (n_sent == kPrefix) n_sent += send_part(socket, bytes.substr(kPrefix), recorder.get());
  const auto reply = asio::buffer(bytes.substr(n_sent));
  co_await asio::async_write(socket, reply, as_result);
}

}  // namespace drun::agent
