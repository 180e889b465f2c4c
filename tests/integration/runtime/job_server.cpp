#include "tests/integration/runtime/job_server.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <future>
#include <optional>
#include <stdexcept>
#include <thread>

#include "base/bytes.h"
#include "base/fd.h"
#include "base/text.h"
#include "rendezvous/agent_socket.h"
#include "rendezvous/server.h"

namespace drun::testing {
namespace {

using Clock = std::chrono::steady_clock;

std::vector<rendezvous::Member> members(const JobOptions& options) {
  const int per_host = options.ranks_per_host > 0 ? options.ranks_per_host : options.size;
  const int n_hosts = (options.size + per_host - 1) / per_host;
  std::vector<rendezvous::Member> result;
  for (int rank = 0; rank < options.size; ++rank) {
    rendezvous::Member member;
    member.rank = rank;
    member.host_index = rank / per_host;
    member.local_rank = rank % per_host;
    member.local_size = std::min(per_host, options.size - member.host_index * per_host);
    member.cross_rank = member.host_index;
    const bool last_has_it = options.size - (n_hosts - 1) * per_host > member.local_rank;
    member.cross_size = last_has_it ? n_hosts : n_hosts - 1;
    member.host = "node" + std::to_string(member.host_index);
    result.push_back(member);
  }
  return result;
}

// The server and its loop, in a thread from construction to destruction.
class ServerThread {
 public:
  ServerThread(const rendezvous::JobKey& key, const JobOptions& options) : work_(asio::make_work_guard(context_)) {
    // Forwards a worker's request to abort to all, as the launcher does.
    rendezvous::ServerEvents events;
    events.abort_requested = [this](const rendezvous::Abort& reason) { server_->abort(reason); };
    server_ = rendezvous::Server::create(context_.get_executor(), key, members(options), "test-job", std::move(events));
    const auto port = server_->listen("127.0.0.1");
    if (!port) throw std::runtime_error(port.error().message());
    port_ = *port;
    thread_ = std::thread([this] { context_.run(); });
  }
  ~ServerThread() {
    asio::co_spawn(context_, end(), [this](std::exception_ptr) { work_.reset(); });
    thread_.join();
  }
  int port() const { return port_; }
  void abort(rendezvous::Abort reason) {
    asio::post(context_, [this, reason = std::move(reason)] { server_->abort(reason); });
  }

 private:
  Task<void> end() {
    server_->stop();
    co_await server_->join();
  }
  asio::io_context context_{1};
  asio::executor_work_guard<asio::io_context::executor_type> work_;
  std::unique_ptr<rendezvous::Server> server_;
  int port_ = 0;
  std::thread thread_;
};

// Gives the handout to each worker that connects, as the agent does.
class AgentSocket {
 public:
  AgentSocket(std::string path, std::string handout, bool shares_memory)
      : path_(std::move(path)), handout_(std::move(handout)) {
    if (shares_memory) memory_.reset(::memfd_create("test", MFD_CLOEXEC));
    listener_.reset(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path_.copy(address.sun_path, sizeof address.sun_path - 1);
    if (::bind(listener_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 ||
        ::listen(listener_.get(), 64) != 0) {
      throw std::runtime_error(path_ + ": " + std::strerror(errno));
    }
    thread_ = std::thread([this] { serve(); });
  }
  ~AgentSocket() {
    ::shutdown(listener_.get(), SHUT_RDWR);
    thread_.join();
    ::unlink(path_.c_str());
  }

 private:
  void serve() {
    sigset_t broken_pipe;  // a worker may die before it has its handout; workers would inherit an ignored signal
    ::sigemptyset(&broken_pipe);
    ::sigaddset(&broken_pipe, SIGPIPE);
    ::pthread_sigmask(SIG_BLOCK, &broken_pipe, nullptr);
    for (;;) {
      const Fd worker(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
      if (!worker) return;
      char hello[8] = {};
      if (::recv(worker.get(), hello, sizeof hello, MSG_WAITALL) != sizeof hello) continue;
      if (std::string_view(hello, sizeof hello) != rendezvous::kWorkerHello) continue;
      ByteWriter out;
      out.str(handout_);
      const auto sent = memory_ ? rendezvous::send_with_descriptor(worker.get(), out.bytes(), memory_.get()) : 0;
      (void)write_all(worker.get(), std::string_view(out.bytes()).substr(sent));
    }
  }
  std::string path_, handout_;
  Fd listener_, memory_;
  std::thread thread_;
};

struct Worker {
  pid_t pid = -1;
  Fd output;
  bool running = true;
  WorkerEnd end;
};

Worker start(const std::vector<std::string>& argv, int rank, const std::vector<std::string>& env) {
  std::vector<std::string> all_env;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    if (std::strncmp(*entry, "DRUN_", 5) != 0) all_env.emplace_back(*entry);
  }
  all_env.push_back("DRUN_RANK=" + std::to_string(rank));
  all_env.insert(all_env.end(), env.begin(), env.end());
  std::vector<char*> c_argv, c_env;
  for (const auto& word : argv) c_argv.push_back(const_cast<char*>(word.c_str()));
  for (const auto& entry : all_env) c_env.push_back(const_cast<char*>(entry.c_str()));
  c_argv.push_back(nullptr);
  c_env.push_back(nullptr);
  auto pipe = make_pipe();
  if (!pipe) throw std::runtime_error(pipe.error().message());
  Worker worker;
  worker.end.rank = rank;
  worker.pid = ::fork();
  if (worker.pid == 0) {
    ::dup2(pipe->write.get(), 1);
    ::dup2(pipe->write.get(), 2);
    ::execve(c_argv[0], c_argv.data(), c_env.data());
    ::_exit(127);
  }
  worker.end.pid = worker.pid;
  worker.output = std::move(pipe->read);
  return worker;
}

void read_output(std::vector<Worker>& workers, std::chrono::milliseconds timeout) {
  std::vector<pollfd> fds;
  for (const auto& worker : workers) fds.push_back({worker.output.get(), POLLIN, 0});
  if (::poll(fds.data(), fds.size(), static_cast<int>(timeout.count())) <= 0) return;
  for (std::size_t i = 0; i < fds.size(); ++i) {
    if (fds[i].revents == 0) continue;
    char buffer[4096];
    const ssize_t n = ::read(fds[i].fd, buffer, sizeof buffer);
    if (n > 0)
      workers[i].end.output.append(buffer, static_cast<std::size_t>(n));
    else
      workers[i].output.reset();
  }
}

}  // namespace

std::vector<WorkerEnd> run_job(const std::vector<std::string>& argv, const JobOptions& options) {
  char directory[] = "/tmp/drun-test-XXXXXX";
  if (::mkdtemp(directory) == nullptr) throw std::runtime_error("mkdtemp");
  const auto key = rendezvous::make_job_key();
  std::vector<Worker> workers;
  {
    ServerThread server(key, options);
    rendezvous::Handout handout{key, "test-job", "127.0.0.1", server.port(), "127.0.0.1"};
    const auto socket_of = [&](int host) { return std::string(directory) + "/agent" + std::to_string(host); };
    const auto places = members(options);
    std::vector<std::unique_ptr<AgentSocket>> agents;  // one per host
    for (int host = 0; host <= places.back().host_index; ++host) {
      agents.push_back(
          std::make_unique<AgentSocket>(socket_of(host), rendezvous::encode_handout(handout), options.shares_memory));
    }
    const auto began = Clock::now();
    for (int rank = 0; rank < options.size; ++rank) {
      std::vector<std::string> env = options.env;
      if (options.by_agent) {
        env.push_back("DRUN_AGENT=" + socket_of(places[static_cast<std::size_t>(rank)].host_index));
      } else {
        env.push_back("DRUN_KEY=" + rendezvous::job_key_to_hex(key));
        env.push_back("DRUN_RENDEZVOUS=127.0.0.1:" + std::to_string(server.port()));
      }
      workers.push_back(start(argv, rank, env));
    }
    const auto open = [](const Worker& worker) { return worker.running || worker.output; };
    const auto goes_on = [](const Worker& worker) { return worker.running && !worker.end.stopped; };
    while (std::any_of(workers.begin(), workers.end(), open)) {
      read_output(workers, std::chrono::milliseconds(20));
      if (std::none_of(workers.begin(), workers.end(), goes_on)) {
        for (const auto& worker : workers) {
          if (worker.running) ::kill(worker.pid, SIGKILL);
        }
      }
      for (auto& worker : workers) {
        int status = 0;
        const bool changed = worker.running && ::waitpid(worker.pid, &status, WNOHANG | WUNTRACED) == worker.pid;
        if (changed && WIFSTOPPED(status)) {
          worker.end.stopped = true;
          worker.end.after = Clock::now() - began;
          continue;
        }
        if (!changed) {
          if (worker.running && Clock::now() - began > options.limit) {
            worker.end.killed = true;
            ::kill(worker.pid, SIGKILL);
          }
          continue;
        }
        worker.running = false;
        if (!worker.end.stopped) worker.end.after = Clock::now() - began;
        worker.end.status = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
        if (WIFSIGNALED(status) && options.abort_on_death) {
          const int rank = worker.end.rank;
          server.abort({rank, members(options)[static_cast<std::size_t>(rank)].host, worker.pid,
                        "killed by signal " + std::to_string(WTERMSIG(status))});
        }
      }
    }
  }
  ::rmdir(directory);
  std::vector<WorkerEnd> ends;
  for (auto& worker : workers) ends.push_back(std::move(worker.end));
  return ends;
}

}  // namespace drun::testing
