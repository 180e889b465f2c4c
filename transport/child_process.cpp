#include "transport/child_process.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "base/text.h"

#ifndef SYS_close_range
#define SYS_close_range 436
#endif
#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif

namespace drun::transport {
namespace {

constexpr auto kPollInterval = std::chrono::milliseconds(20);  // where the kernel has no pidfd (before 5.3)
constexpr unsigned kCloseRangeCloexec = 4;

std::vector<std::string> exec_candidates(const std::string& program) {
  if (program.find('/') != std::string::npos) return {program};
  const char* path = ::getenv("PATH");
  std::vector<std::string> out;
  for (const auto dir : split(path != nullptr ? path : "/usr/local/bin:/usr/bin:/bin", ':')) {
    out.push_back((dir.empty() ? "." : std::string(dir)) + "/" + program);
  }
  return out;
}

// --- between fork and exec: async-signal-safe calls only ---

void cloexec_listed_descriptors() {
  struct Entry {
    std::uint64_t inode;
    std::int64_t offset;
    unsigned short length;
    unsigned char type;
    char name[1];
  };
  const int dir = ::open("/proc/self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (dir < 0) {
    rlimit limit{};
    ::getrlimit(RLIMIT_NOFILE, &limit);
    for (int fd = 3; fd < static_cast<int>(std::min<rlim_t>(limit.rlim_cur, 1 << 20)); ++fd) {
      ::fcntl(fd, F_SETFD, FD_CLOEXEC);
    }
    return;
  }
  alignas(8) char buffer[4096];
  for (;;) {
    const long n = ::syscall(SYS_getdents64, dir, buffer, sizeof buffer);
    if (n <= 0) return;
    for (long at = 0; at < n;) {
      const auto* entry = reinterpret_cast<const Entry*>(buffer + at);
      at += entry->length;
      int fd = 0;
      const char* p = entry->name;
      while (*p >= '0' && *p <= '9') fd = fd * 10 + (*p++ - '0');
      if (*p == 0 && fd >= 3) ::fcntl(fd, F_SETFD, FD_CLOEXEC);
    }
  }
}

// `parent`: 0, or the process with whose end the child gets SIGTERM.
[[noreturn]] void exec_child(const std::vector<const char*>& paths, char* const* argv, int in, int out, int err,
                             int error_fd, pid_t parent) {
  if (parent == 0) {
    ::setpgid(0, 0);
  } else {
    ::setsid();  // an ssh behind a proxy that asked on the terminal would be stopped there, and wait without a word
    ::prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (::getppid() != parent) ::_exit(127);
  }
  // Moves the descriptors above 2 first, because any of them may be 0, 1 or 2.
  error_fd = ::fcntl(error_fd, F_DUPFD_CLOEXEC, 10);
  in = ::fcntl(in, F_DUPFD_CLOEXEC, 10);
  out = ::fcntl(out, F_DUPFD_CLOEXEC, 10);
  err = ::fcntl(err, F_DUPFD_CLOEXEC, 10);
  int problem = 0;
  if (in < 0 || out < 0 || err < 0 || ::dup2(in, 0) < 0 || ::dup2(out, 1) < 0 || ::dup2(err, 2) < 0) problem = errno;
  if (::syscall(SYS_close_range, 3u, ~0u, kCloseRangeCloexec) != 0) cloexec_listed_descriptors();
  restore_open_file_limit();
  struct sigaction fallback {};
  fallback.sa_handler = SIG_DFL;
  for (int n = 1; n < NSIG; ++n) ::sigaction(n, &fallback, nullptr);
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  if (problem == 0) {
    problem = ENOENT;
    for (const char* path : paths) {
      ::execv(path, argv);
      if (errno == ENOENT || errno == ENOTDIR) continue;
      problem = errno;
      if (errno != EACCES) break;
    }
  }
  [[maybe_unused]] const ssize_t n = ::write(error_fd, &problem, sizeof problem);
  ::_exit(127);
}

}  // namespace

Result<std::unique_ptr<ChildProcess>> ChildProcess::start(asio::io_context& io, const std::vector<std::string>& argv,
                                                          int stdin_fd, int stdout_fd, int stderr_fd,
                                                          bool ends_with_us) {
  const auto candidates = exec_candidates(argv.at(0));
  std::vector<const char*> paths;
  for (const auto& path : candidates) paths.push_back(path.c_str());
  std::vector<char*> words;
  for (const auto& word : argv) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  auto error_pipe = make_pipe();
  if (!error_pipe) return fail(error_pipe.error());

  // Blocks signals around the fork, so that no handler of this process runs in the child.
  sigset_t all, before;
  sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  const pid_t parent = ends_with_us ? ::getpid() : 0;
  const pid_t pid = ::fork();
  if (pid == 0) exec_child(paths, words.data(), stdin_fd, stdout_fd, stderr_fd, error_pipe->write.get(), parent);
  const int fork_error = errno;
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (pid < 0) return fail(errno_error(fork_error, "fork"));

  error_pipe->write.reset();
  int problem = 0;
  ssize_t n = 0;
  do {
    n = ::read(error_pipe->read.get(), &problem, sizeof problem);
  } while (n < 0 && errno == EINTR);
  if (n == static_cast<ssize_t>(sizeof problem)) {
    while (::waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
    }
    return fail(errno_error(problem, "can't start " + argv[0]));
  }
  std::unique_ptr<ChildProcess> child(new ChildProcess(io, pid));
  child->tasks_.spawn(child->watch());
  return child;
}

ChildProcess::ChildProcess(asio::io_context& io, pid_t pid)
    : io_(io),
      pid_(pid),
      pidfd_(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0))),
      ended_(io.get_executor()),
      kill_timer_(io),
      tasks_(io.get_executor()) {}

ChildProcess::~ChildProcess() {
  if (ended()) return;
  ::kill(-pid_, SIGKILL);
  ::kill(pid_, SIGKILL);
  while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

void ChildProcess::end(Ending how) {
  if (ending_ || ended()) return;
  ending_ = true;
  ::kill(pid_, how.is_agent ? SIGCONT : SIGTERM);
  tasks_.spawn(kill_after(how.kill_delay));
}

Task<void> ChildProcess::kill_after(std::chrono::milliseconds kill_delay) {
  if (ended()) co_return;
  kill_timer_.expires_after(kill_delay);
  co_await kill_timer_.async_wait(as_result);
  if (ended()) co_return;
  ::kill(-pid_, SIGKILL);
  ::kill(pid_, SIGKILL);
}

bool ChildProcess::try_reap() {
  int status = 0;
  const pid_t pid = ::waitpid(pid_, &status, WNOHANG);
  if (pid == 0 || (pid < 0 && errno == EINTR)) return false;
  if (pid < 0) {
    exit_status_ = 255;  // reaped elsewhere in this process
  } else {
    exit_status_ = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  }
  return true;
}

Task<void> ChildProcess::watch() {
  if (pidfd_) {
    asio::posix::stream_descriptor exited(io_, pidfd_.release());
    while (!try_reap()) co_await exited.async_wait(asio::posix::stream_descriptor::wait_read, as_result);
  } else {
    Timer timer(io_);
    while (!try_reap()) {
      timer.expires_after(kPollInterval);
      co_await timer.async_wait(as_result);
    }
  }
  ended_.notify();
  kill_timer_.cancel();
}

void ignore_sigpipe() {
  struct sigaction current {};
  if (::sigaction(SIGPIPE, nullptr, &current) == 0 && current.sa_handler == SIG_DFL) ::signal(SIGPIPE, SIG_IGN);
}

}  // namespace drun::transport
