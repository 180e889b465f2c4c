#include "runtime/src/backend/shm/peer_process.h"

#include <poll.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

#include "base/fd.h"
#include "base/process_stat.h"

#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif

namespace drun::runtime {
namespace {

std::uint64_t own_pid_namespace() {
  struct stat about {};
  return ::stat("/proc/self/ns/pid", &about) == 0 ? about.st_ino : 0;
}

}  // namespace

void ProcessMark::tell() {
  const auto own = own_stat();
  if (!own || own->pid != ::getpid()) return;  // a /proc of another namespace
  start_.store(own->start, std::memory_order_relaxed);
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
  const auto now = stat_of(process);
  return now && now->start != start_.load(std::memory_order_relaxed);  // another process has its pid
}

}  // namespace drun::runtime
