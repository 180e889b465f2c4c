#include "launcher/agent/guard.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

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

// True: the agent closed its pipe (it is gone). False: it went silent.
bool watch(int from_agent, int to_agent) {
  int silent_seconds = 0;
  while (silent_seconds < kGuardSilenceLimit) {
    pollfd p{from_agent, POLLIN, 0};
    const int ready = ::poll(&p, 1, kSecond);
    if (ready < 0 && errno != EINTR) return true;
    char bytes[64];
    if (::write(to_agent, ".", 1) < 0 && errno == EPIPE) return true;
    if (ready <= 0) {
      ++silent_seconds;
      continue;
    }
    const ssize_t n = ::read(from_agent, bytes, sizeof bytes);
    if (n == 0 || (n < 0 && errno != EINTR && errno != EAGAIN)) return true;
    silent_seconds = 0;
    // The agent's bytes come once per second; answering each keeps the pace without a second timer.
  }
  return false;
}

}  // namespace

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
  watch(up->read.get(), down->write.get());

  int status = 70;
  const Reaped note = [&](pid_t ended, int wait_status) {
    if (ended != pid) return;
    status = WIFEXITED(wait_status) ? WEXITSTATUS(wait_status) : 128 + WTERMSIG(wait_status);
  };
  // An agent that ends in good order closes its pipe a moment before it exits.
  for (int i = 0; i < 100; ++i) {
    int wait_status = 0;
    const pid_t ended = ::waitpid(pid, &wait_status, WNOHANG);
    if (ended == pid) {
      note(pid, wait_status);
      break;
    }
    ::usleep(1000);
  }
  sweep(Clock::now() + std::chrono::seconds(30), note);
  return status;
}

}  // namespace drun::agent
