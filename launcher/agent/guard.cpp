#include "launcher/agent/guard.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string_view>

#include "launcher/agent/sweep.h"

namespace drun::agent {

namespace {

constexpr int kSecond = 1000;

void rename_process(char** argv, const char* name) {
  ::prctl(PR_SET_NAME, name);
  const std::size_t room = std::strlen(argv[0]);
  std::memset(argv[0], 0, room);
  std::strncpy(argv[0], name, room);
}

// The guard needs neither end of the control channel: while it held one, drun could not see the agent's end.
void drop_channel() {
  const int null = ::open("/dev/null", O_RDWR);
  if (null < 0) return;
  ::dup2(null, STDIN_FILENO);
  ::dup2(null, STDOUT_FILENO);
  if (null > STDERR_FILENO) ::close(null);
}

// The agent's bytes: a "." per second, and once "\nJOB\nSOCKET\n".
class MarkReader {
 public:
  void take(std::string_view bytes) {
    for (const char c : bytes) {
      if (c == '\n') {
        ++n_lines_;
      } else if (n_lines_ == 1) {
        mark_.job_id += c;
      } else if (n_lines_ == 2) {
        mark_.agent_socket += c;
      }
    }
  }
  // An agent that died while it told has started no worker.
  JobMark mark() const { return n_lines_ == 3 ? mark_ : JobMark(); }

 private:
  int n_lines_ = 0;
  JobMark mark_;
};

// True: the agent closed its pipe (it is gone). False: it went silent.
bool watch(int from_agent, int to_agent, MarkReader& reader) {
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
    if (n > 0) reader.take(std::string_view(bytes, static_cast<std::size_t>(n)));
    silent_seconds = 0;
    // The agent's bytes come once per second; answering each keeps the pace without a second timer.
  }
  return false;
}

// To drun, which shows what an agent said last. Never blocks: drun may be gone.
void say(const std::string& text) {
  pollfd p{STDERR_FILENO, POLLOUT, 0};
  if (::poll(&p, 1, 0) != 1 || (p.revents & POLLOUT) == 0) return;
  const std::string line = "drun-agent: " + text + "\n";
  [[maybe_unused]] const ssize_t n = ::write(STDERR_FILENO, line.data(), line.size());
}

// What a killed agent could not remove: the socket, and the folder that was made for it.
void remove_socket(const std::string& path) {
  const auto slash = path.rfind('/');
  if (slash == std::string::npos || slash == 0) return;
  ::unlink(path.c_str());
  ::rmdir(path.substr(0, slash).c_str());
}

}  // namespace

void tell_guard(const GuardLink& link, const JobMark& mark) {
  const std::string text = "\n" + mark.job_id + "\n" + mark.agent_socket + "\n";
  [[maybe_unused]] const ssize_t n = ::write(link.to_guard.get(), text.data(), text.size());
}

int run_guarded(const std::function<int(GuardLink)>& agent, char** argv) {
  become_subreaper();
  ::signal(SIGPIPE, SIG_IGN);
  auto down = make_pipe();
  auto up = make_pipe();
  if (!down || !up) return 70;
  const pid_t guard_pid = ::getpid();
  const pid_t pid = ::fork();
  if (pid < 0) return 70;
  if (pid == 0) {
    GuardLink link;
    link.from_guard = std::move(down->read);
    link.to_guard = std::move(up->write);
    link.guard_pid = guard_pid;
    down->write.reset();
    up->read.reset();
    become_subreaper();
    ::setpgid(0, 0);
    ::prctl(PR_SET_NAME, "drun-agent");
    ::_exit(agent(std::move(link)));
  }
  down->read.reset();
  up->write.reset();
  rename_process(argv, "drun-guard");
  drop_channel();
  // Signals sent to the whole group (a closing terminal, a careless kill) are the agent's business: it ends the
  // workers in order, and the guard follows.
  for (const int s : {SIGHUP, SIGINT, SIGQUIT, SIGTERM}) ::signal(s, SIG_IGN);
  set_nonblocking(down->write.get(), true);
  MarkReader reader;
  const bool ended = watch(up->read.get(), down->write.get(), reader);
  if (!ended) say("silent for " + std::to_string(kGuardSilenceLimit) + " s, its guard ends it and the workers");

  int status = 70;
  const Reaped note = [&](pid_t reaped_pid, int wait_status) {
    if (reaped_pid != pid) return;
    if (ended && WIFSIGNALED(wait_status)) say("was ended by signal " + std::to_string(WTERMSIG(wait_status)));
    status = WIFEXITED(wait_status) ? WEXITSTATUS(wait_status) : 128 + WTERMSIG(wait_status);
  };
  // An agent that ends in good order closes its pipe a moment before it exits.
  for (int i = 0; i < 100; ++i) {
    int wait_status = 0;
    if (::waitpid(pid, &wait_status, WNOHANG) == pid) {
      note(pid, wait_status);
      break;
    }
    ::usleep(1000);
  }
  const JobMark mark = reader.mark();
  sweep(Clock::now() + std::chrono::seconds(30), note, mark);
  remove_socket(mark.agent_socket);
  return status;
}

}  // namespace drun::agent
