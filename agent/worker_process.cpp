#include "agent/worker_process.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "agent/fork_child.h"

namespace drun::agent {

namespace {

enum class Step { kTerminal, kStreams, kDirectory, kExecute, kBind };
constexpr const char* kStepNames[] = {"set up the terminal of", "set up the standard streams of",
                                      "enter the working directory of", "execute", "set the CPUs of"};
struct ExecFailure {
  Step step = Step::kExecute;
  int err = 0;
};

[[noreturn]] void child_fail(int report, Step step, int err) {
  const ExecFailure failure{step, err};
  [[maybe_unused]] const ssize_t n = ::write(report, &failure, sizeof failure);
  ::_exit(127);
}

struct Pty {
  Fd master;
  std::string slave;
};

Result<Pty> open_pty(TerminalSize size) {
  Pty pty;
  pty.master.reset(::open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC));
  int number = 0;
  int unlock = 0;
  if (!pty.master || ::ioctl(pty.master.get(), TIOCSPTLCK, &unlock) != 0 ||
      ::ioctl(pty.master.get(), TIOCGPTN, &number) != 0) {
    return fail(errno_error(errno, "open a terminal"));
  }
  set_terminal_size(pty.master.get(), size);
  pty.slave = "/dev/pts/" + std::to_string(number);
  return pty;
}

std::vector<char*> pointers(const std::vector<std::string>& words) {
  std::vector<char*> out;
  for (const auto& w : words) out.push_back(const_cast<char*>(w.c_str()));
  out.push_back(nullptr);
  return out;
}

// The mask as sched_setaffinity expects it.
std::vector<unsigned long> cpu_mask(const std::vector<int>& cpus) {
  constexpr std::size_t kBits = 8 * sizeof(unsigned long);
  std::vector<unsigned long> mask;
  for (const int cpu : cpus) {
    const auto bit = static_cast<std::size_t>(cpu);
    if (mask.size() <= bit / kBits) mask.resize(bit / kBits + 1);
    mask[bit / kBits] |= 1ul << bit % kBits;
  }
  return mask;
}

struct ChildFds {
  int in = -1, out = -1, err = -1;
  std::string slave;           // of the pty, or empty
  const char* directory = "";  // "" = the agent's
  int cgroup_procs = -1;
  mode_t umask = 022;
  std::vector<unsigned long> cpu_mask;  // empty: the agent's CPUs
};

[[noreturn]] void run_child(const ChildFds& fds, int report, pid_t agent, const char* file, char** argv, char** envp) {
  // First of all, so that no descendant can be outside the cgroup.
  if (fds.cgroup_procs >= 0) {
    [[maybe_unused]] const ssize_t entered = ::write(fds.cgroup_procs, "0", 1);
  }
  // After entering the cgroup, because that may set the mask to the cgroup's.
  if (!fds.cpu_mask.empty() && ::sched_setaffinity(0, fds.cpu_mask.size() * sizeof fds.cpu_mask[0],
                                                   reinterpret_cast<const cpu_set_t*>(fds.cpu_mask.data())) != 0) {
    child_fail(report, Step::kBind, errno);
  }
  // Permits the agent's stack tools to trace the worker under Yama, which lets only ancestors trace a process. Fails
  // without Yama.
  ::prctl(PR_SET_PTRACER, agent);
  if (fds.slave.empty()) {
    ::setpgid(0, 0);
    if (::dup2(fds.in, 0) < 0 || ::dup2(fds.out, 1) < 0 || ::dup2(fds.err, 2) < 0)
      child_fail(report, Step::kStreams, errno);
  } else {
    ::setsid();
    const int tty = ::open(fds.slave.c_str(), O_RDWR);
    if (tty < 0 || ::ioctl(tty, TIOCSCTTY, 0) != 0) child_fail(report, Step::kTerminal, errno);
    if (::dup2(fds.in >= 0 ? fds.in : tty, 0) < 0 || ::dup2(tty, 1) < 0 || ::dup2(tty, 2) < 0)
      child_fail(report, Step::kStreams, errno);
    if (tty > 2) ::close(tty);
  }
  // Closes Asio's descriptors, and those that ssh or a hook left open. Before what may hang: a child that hangs must
  // not hold the channel to drun.
  close_others(STDERR_FILENO + 1, report);
  restore_open_file_limit();
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::umask(fds.umask);
  if (*fds.directory != '\0' && ::chdir(fds.directory) != 0) child_fail(report, Step::kDirectory, errno);
  ::execve(file, argv, envp);
  if (errno == ENOEXEC) {
    // Run a script without "#!" with sh, as a shell and execvp do.
    std::vector<char*> words = {const_cast<char*>("/bin/sh"), const_cast<char*>(file)};
    for (char** a = argv + 1; argv[0] != nullptr && *a != nullptr; ++a) words.push_back(*a);
    words.push_back(nullptr);
    ::execve("/bin/sh", words.data(), envp);
    errno = ENOEXEC;
  }
  child_fail(report, Step::kExecute, errno);
}

}  // namespace

Result<WorkerProcess> start_worker(const WorkerStart& start) {
  std::vector<std::string> environment;
  for (const auto& [name, value] : start.environment) environment.push_back(name + "=" + value);
  auto argv = pointers(start.argv);
  auto envp = pointers(environment);

  WorkerProcess worker;
  ChildFds child;
  child.cgroup_procs = start.cgroup_procs;
  child.umask = start.umask;
  child.directory = start.directory.c_str();
  child.cpu_mask = cpu_mask(start.cpus);
  Fd child_in, child_out, child_err;
  if (start.pty) {
    auto pty = open_pty(start.window);
    if (!pty) return fail(std::move(pty.error()));
    child.slave = pty->slave;
    worker.stdout_end = std::move(pty->master);
    if (start.wants_stdin) {
      worker.stdin_end.reset(::fcntl(worker.stdout_end.get(), F_DUPFD_CLOEXEC, 3));
    } else {
      child_in.reset(::open("/dev/null", O_RDONLY | O_CLOEXEC));
      child.in = child_in.get();
    }
  } else {
    auto out = make_pipe();
    auto err = make_pipe();
    if (!out || !err) return fail(Errc::kIo, "out of file descriptors");
    worker.stdout_end = std::move(out->read);
    worker.stderr_end = std::move(err->read);
    child_out = std::move(out->write);
    child_err = std::move(err->write);
    if (start.wants_stdin) {
      auto in = make_pipe();
      if (!in) return fail(std::move(in.error()));
      worker.stdin_end = std::move(in->write);
      child_in = std::move(in->read);
    } else {
      child_in.reset(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    }
    child.in = child_in.get();
    child.out = child_out.get();
    child.err = child_err.get();
  }
  auto report = make_pipe();
  if (!report) return fail(std::move(report.error()));

  const pid_t agent = ::getpid();
  const pid_t pid = fork_child();
  if (pid < 0) return fail(errno_error(errno, "fork"));
  if (pid == 0) run_child(child, report->write.get(), agent, start.file.c_str(), argv.data(), envp.data());
  if (!start.pty) ::setpgid(pid, pid);  // in both processes, so that a signal to the group can't come too early
  worker.exec_report = std::move(report->read);
  worker.pid = pid;
  return worker;
}

Result<void> exec_result(std::string_view report, const std::string& file) {
  ExecFailure failure;
  if (report.size() < sizeof failure) return {};
  std::memcpy(&failure, report.data(), sizeof failure);
  Error error = errno_error(failure.err, kStepNames[static_cast<std::size_t>(failure.step)] + (" " + file));
  error.code = failure.err == ENOENT ? Errc::kNotFound : Errc::kNotExecutable;
  return fail(std::move(error));
}

}  // namespace drun::agent
