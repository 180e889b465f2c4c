#include "agent/guard.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstring>
#include <string_view>

#include "agent/cgroup.h"
#include "agent/sweep.h"
#include "agent/worker_socket.h"
#include "base/process_stat.h"

namespace drun::agent {

namespace {

constexpr int kSecond = 1000;
constexpr std::chrono::seconds kSweepTime{30};
constexpr std::chrono::milliseconds kStuckTime{300};  // the agent has waited already

void rename_process(char** argv, const char* name) {
  ::prctl(PR_SET_NAME, name);
  const std::size_t room = std::strlen(argv[0]);
  std::memset(argv[0], 0, room);
  std::strncpy(argv[0], name, room);
}

// Closes the guard's ends of the control channel, which it does not need: if it held one, drun could not see the
// agent's end.
void drop_channel() {
  const int null = ::open("/dev/null", O_RDWR);
  if (null < 0) return;
  ::dup2(null, STDIN_FILENO);
  ::dup2(null, STDOUT_FILENO);
  if (null > STDERR_FILENO) ::close(null);
}

// From here on this process and its children have no controlling terminal: a worker of this host that opened the user's
// would be stopped, as a program in the background, in silence. It stays in its session, by which PBS counts what a job
// uses.
void leave_terminal() {
  const Fd terminal(::open("/dev/tty", O_RDWR | O_NOCTTY | O_CLOEXEC | O_NONBLOCK));
  if (terminal) ::ioctl(terminal.get(), TIOCNOTTY);
}

// True: the agent closed its pipe (it is gone). False: it went silent.
bool watch(int from_agent, int to_agent, GuardMessages& words) {
  int silent_seconds = 0;
  while (silent_seconds < kGuardSilenceLimit) {
    pollfd p{from_agent, POLLIN, 0};
    const int ready = ::poll(&p, 1, kSecond);
    if (ready < 0 && errno != EINTR) return true;
    char bytes[512];
    if (::write(to_agent, ".", 1) < 0 && errno == EPIPE) return true;
    if (ready <= 0) {
      ++silent_seconds;
      continue;
    }
    const ssize_t n = ::read(from_agent, bytes, sizeof bytes);
    if (n == 0 || (n < 0 && errno != EINTR && errno != EAGAIN)) return true;
    if (n > 0) words.push(std::string_view(bytes, static_cast<std::size_t>(n)));
    silent_seconds = 0;
    // The agent's bytes come once per second; answering each keeps the pace without a second timer.
  }
  return false;
}

// Writes a line for drun, which shows an agent's last line. Never blocks, because drun may be gone.
void say(const std::string& text) {
  pollfd p{STDERR_FILENO, POLLOUT, 0};
  if (::poll(&p, 1, 0) != 1 || (p.revents & POLLOUT) == 0) return;
  const std::string line = "drun-agent: " + text + "\n";
  [[maybe_unused]] const ssize_t n = ::write(STDERR_FILENO, line.data(), line.size());
}

// Reads the agent's last messages, which may still be in the pipe.
void drain(int from_agent, GuardMessages& words) {
  char bytes[4096];
  pollfd p{from_agent, POLLIN, 0};
  while (::poll(&p, 1, 0) == 1) {
    const ssize_t n = ::read(from_agent, bytes, sizeof bytes);
    if (n <= 0) return;
    words.push(std::string_view(bytes, static_cast<std::size_t>(n)));
  }
}

}  // namespace

void GuardMessages::push(std::string_view bytes) {
  for (const char c : bytes) {
    if (line_.empty()) {
      if (c != '.') line_ = c;
    } else if (c == '\n') {
      const std::string text = line_.substr(1);
      if (line_[0] == 'J') job_id_ = text;
      if (line_[0] == 'S') socket_directory_ = text;
      if (line_[0] == 'C') cgroup_ = text;
      line_.clear();
    } else {
      line_ += c;
    }
  }
}

// An agent that died before it had sent both has started no worker.
JobMark GuardMessages::mark() const {
  if (job_id_.empty() || socket_directory_.empty()) return {};
  return JobMark{job_id_, WorkerSocket::path_in(socket_directory_)};
}

bool notify_guard(const GuardLink& guard, char what, const std::string& text) {
  const std::string line = what + text + "\n";
  if (line.size() > PIPE_BUF || text.find('\n') != std::string::npos) return false;
  return ::write(guard.to_guard.get(), line.data(), line.size()) == static_cast<ssize_t>(line.size());
}

void run_guarded(const std::function<int(GuardLink)>& agent, char** argv) {
  become_subreaper();
  ::signal(SIGPIPE, SIG_IGN);
  auto down = make_pipe();
  auto up = make_pipe();
  if (!down || !up) ::_exit(70);
  const pid_t guard_pid = ::getpid();
  const pid_t pid = ::fork();
  if (pid < 0) ::_exit(70);
  if (pid == 0) {
    GuardLink link;
    link.from_guard = std::move(down->read);
    link.to_guard = std::move(up->write);
    link.guard_pid = guard_pid;
    link.guard_process.reset(static_cast<int>(::syscall(SYS_pidfd_open, guard_pid, 0)));
    if (::getppid() != guard_pid) link.guard_process.reset();  // it is gone, and the number may be another's
    down->write.reset();
    up->read.reset();
    become_subreaper();
    ::setpgid(0, 0);
    leave_terminal();
    ::prctl(PR_SET_NAME, "drun-agent");
    ::_exit(agent(std::move(link)));
  }
  down->read.reset();
  up->write.reset();
  rename_process(argv, "drun-guard");
  drop_channel();
  // Signals to the whole group (a closing terminal, a careless kill) are left to the agent: it ends the workers in
  // order, and the guard follows.
  for (const int s : {SIGHUP, SIGINT, SIGQUIT, SIGTERM}) ::signal(s, SIG_IGN);
  set_nonblocking(down->write.get(), true);
  GuardMessages words;
  const bool ended = watch(up->read.get(), down->write.get(), words);
  if (!ended) {
    const auto stat = stat_of(pid);  // T: stopped, D: stuck in the kernel, R: the host has too few processors
    say("silent for " + std::to_string(kGuardSilenceLimit) + " s in state " + (stat ? stat->state : '?') +
        ", its guard ends it and the workers");
  }

  int status = 70;
  const Reaped note = [&](pid_t reaped_pid, int wait_status) {
    if (reaped_pid != pid) return;
    if (ended && WIFSIGNALED(wait_status)) say("was killed by signal " + std::to_string(WTERMSIG(wait_status)));
    status = WIFEXITED(wait_status) ? WEXITSTATUS(wait_status) : 128 + WTERMSIG(wait_status);
  };
  // An agent that ends normally closes its pipe a moment before it exits.
  for (int i = 0; i < 100; ++i) {
    int wait_status = 0;
    if (::waitpid(pid, &wait_status, WNOHANG) == pid) {
      note(pid, wait_status);
      break;
    }
    ::usleep(1000);
  }
  drain(up->read.get(), words);
  if (!words.cgroup().empty()) kill_cgroup(words.cgroup());
  SweepLimits limits;
  limits.deadline = Clock::now() + kSweepTime;
  limits.stuck = kStuckTime;
  // The agent has done the same, if it ended in order: neither relies on the other.
  const Swept swept = sweep(limits, note, words.mark());
  if (!words.cgroup().empty()) remove_cgroup(words.cgroup(), Clock::now() + std::chrono::seconds(1));
  // `drun clean` knows what is left by this directory.
  if (!words.socket_directory().empty() && swept.stuck.empty()) remove_socket_directory(words.socket_directory());
  // Not exit(): its leak check stops this process to inspect it, and drun's SIGCONT (for a frozen guard) undoes that
  // stop, after which both wait forever.
  ::_exit(status);
}

}  // namespace drun::agent
