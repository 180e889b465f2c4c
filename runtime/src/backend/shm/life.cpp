#include "runtime/src/backend/shm/life.h"

#include <poll.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <string>

#include "base/fd.h"
#include "base/text.h"

#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif

namespace drun::runtime {
namespace {

struct Process {
  std::uint64_t pid = 0;
  std::uint64_t start = 0;  // clock ticks since boot; 0: not known
};

Process read_process(const std::string& name) {
  const auto stat = read_file("/proc/" + name + "/stat");
  if (!stat) return {};
  const auto end_of_name = stat->rfind(") ");  // of the program, which may hold anything
  if (end_of_name == std::string::npos) return {};
  const auto fields = split(std::string_view(*stat).substr(end_of_name + 2), ' ');  // from the third on, the state
  const auto pid = parse_number(std::string_view(*stat).substr(0, stat->find(' ')));
  const auto start = fields.size() > 19 ? parse_number(fields[19]) : std::nullopt;
  return pid && start ? Process{*pid, *start} : Process{};
}

std::uint64_t own_pid_namespace() {
  struct stat about {};
  return ::stat("/proc/self/ns/pid", &about) == 0 ? about.st_ino : 0;
}

}  // namespace

void ProcessMark::tell() {
  const Process own = read_process("self");
  if (own.pid != static_cast<std::uint64_t>(::getpid())) return;  // a /proc of another namespace
  start_.store(own.start, std::memory_order_relaxed);
  pid_namespace_.store(own_pid_namespace(), std::memory_order_relaxed);
  pid_.store(::getpid(), std::memory_order_release);
}

bool ProcessMark::has_ended() const {
  const pid_t process = pid();
  const auto name_space = pid_namespace_.load(std::memory_order_relaxed);
  if (process == 0 || process == ::getpid() || name_space == 0 || name_space != own_pid_namespace()) return false;
  const Fd life(static_cast<int>(::syscall(SYS_pidfd_open, process, 0)));
  if (!life) return errno == ESRCH;
  pollfd end{life.get(), POLLIN, 0};
  if (::poll(&end, 1, 0) > 0) return true;
  const Process now = read_process(std::to_string(process));
  return now.start != 0 && now.start != start_.load(std::memory_order_relaxed);  // another one has its pid
}

}  // namespace drun::runtime
