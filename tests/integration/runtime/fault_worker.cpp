// A worker that raises a signal in itself at the n-th point of the call that its first argument names. Points are
// messages, waits and copies of data. It is linked with libdrun's own objects, whose calls of the C library go through
// here (--wrap).
#include <poll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdarg>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "drun/drun.hpp"

extern "C" {
ssize_t __real_sendmsg(int fd, const msghdr* message, int flags);
ssize_t __real_recvmsg(int fd, msghdr* message, int flags);
int __real_poll(pollfd* fds, nfds_t n_fds, int timeout);
long __real_syscall(long number, ...);
void* __real_memcpy(void* to, const void* from, std::size_t n_bytes);
}

namespace {

enum Kind { kSend, kReceive, kWait, kSleep, kCopy, kKinds };

bool armed = false;
int fault_at = 0, fault_signal = 0, n_points = 0;
int n_of_kind[kKinds];

bool is_here() { return armed && n_points++ == fault_at; }

void point(Kind kind) {
  if (armed) ++n_of_kind[kind];
  if (is_here()) std::raise(fault_signal);
}

}  // namespace

extern "C" {

// Points before the message, and in the middle of its header.
ssize_t __wrap_sendmsg(int fd, const msghdr* message, int flags) {
  point(kSend);
  if (is_here()) {
    iovec part = message->msg_iov[0];
    part.iov_len = part.iov_len / 2;
    msghdr half = *message;
    half.msg_iov = &part;
    half.msg_iovlen = 1;
    (void)__real_sendmsg(fd, &half, flags);
    std::raise(fault_signal);
  }
  return __real_sendmsg(fd, message, flags);
}

ssize_t __wrap_recvmsg(int fd, msghdr* message, int flags) {
  point(kReceive);
  return __real_recvmsg(fd, message, flags);
}

int __wrap_poll(pollfd* fds, nfds_t n_fds, int timeout) {
  if (timeout != 0) point(kWait);
  return __real_poll(fds, n_fds, timeout);
}

// The futex of a counter: to sleep, and to wake sleepers.
long __wrap_syscall(long number, ...) {
  va_list list;
  va_start(list, number);
  long args[6];
  for (long& arg : args) arg = va_arg(list, long);
  va_end(list);
  if (number == SYS_futex) point(kSleep);
  return __real_syscall(number, args[0], args[1], args[2], args[3], args[4], args[5]);
}

// Counts copies of a call's data, except the blocks in which large data is reduced: these are too many, and all alike.
void* __wrap_memcpy(void* to, const void* from, std::size_t n_bytes) {
  if (n_bytes >= 1000 && n_bytes != 2048) point(kCopy);
  return __real_memcpy(to, from, n_bytes);
}

}  // extern "C"

namespace {

using drun::Communicator;

struct Data {
  Data(std::size_t count, int size) : n(count), send(count * static_cast<std::size_t>(size), 1.0F), recv(send.size()) {}
  std::size_t n;
  std::vector<float> send, recv;
  std::vector<std::size_t> counts() const { return std::vector<std::size_t>(send.size() / n, n); }
};

using Call = std::function<void(Communicator&, Data&)>;

const std::map<std::string, Call> kCalls = {
    {"allreduce", [](Communicator& all, Data& d) { all.allreduce(d.recv.data(), d.n); }},
    {"adasum", [](Communicator& all, Data& d) { all.allreduce(d.recv.data(), d.n, DRUN_ADASUM); }},
    {"reduce", [](Communicator& all, Data& d) { all.reduce(d.send.data(), d.recv.data(), d.n); }},
    {"reduce_scatter", [](Communicator& all, Data& d) { all.reduce_scatter(d.send.data(), d.recv.data(), d.n); }},
    {"broadcast", [](Communicator& all, Data& d) { all.broadcast(d.recv.data(), d.n); }},
    {"allgather", [](Communicator& all, Data& d) { all.allgather(d.send.data(), d.recv.data(), d.n); }},
    {"allgatherv", [](Communicator& all, Data& d) { all.allgatherv(d.send.data(), d.n, d.recv.data(), d.counts()); }},
    {"gather", [](Communicator& all, Data& d) { all.gather(d.send.data(), d.recv.data(), d.n); }},
    {"scatter", [](Communicator& all, Data& d) { all.scatter(d.send.data(), d.recv.data(), d.n); }},
    {"alltoall", [](Communicator& all, Data& d) { all.alltoall(d.send.data(), d.recv.data(), d.n); }},
    {"alltoallv",
     [](Communicator& all, Data& d) { all.alltoallv(d.send.data(), d.counts(), d.recv.data(), d.counts()); }},
    {"exchange",
     [](Communicator& all, Data& d) {
       drun::Group together;
       all.send(d.send.data(), d.n, (all.rank() + 1) % all.size());
       all.recv(d.recv.data(), d.n, (all.rank() + all.size() - 1) % all.size());
       together.end();
     }},
    // Ranks that come in time must sleep, even if processes get no core for a while.
    {"late",
     [](Communicator& all, Data& d) {
       if (all.rank() == 0) std::this_thread::sleep_for(std::chrono::seconds(2));
       all.allreduce(d.recv.data(), d.n);
     }},
    {"barrier", [](Communicator& all, Data&) { all.barrier(); }},
    {"split", [](Communicator& all, Data&) { all.split(all.rank() % 2)->barrier(); }},
    {"init", {}},
};

int run(const std::string& name, std::size_t count, int victim) {
  const char* rank = std::getenv("DRUN_RANK");
  const bool is_victim = rank != nullptr && std::atoi(rank) == victim;
  const Call& call = kCalls.at(name);
  armed = is_victim && !call;
  Communicator all;
  armed = false;
  if (call) {
    Data data(count, all.size());
    all.barrier();
    // Small calls run twice: the first must leave nothing behind that disturbs the second.
    armed = is_victim;
    for (int i = 0; i < (count > 10'000 ? 1 : 2); ++i) call(all, data);
    armed = false;
  }
  if (is_victim) {
    std::printf("not reached: %d points, %d sends, %d receives, %d waits, %d sleeps, %d copies\n", n_points,
                n_of_kind[kSend], n_of_kind[kReceive], n_of_kind[kWait], n_of_kind[kSleep], n_of_kind[kCopy]);
    std::fflush(stdout);
  }
  all.barrier();  // no rank passes it without the victim
  return 0;
}

}  // namespace

// Arguments: CALL ELEMENTS RANK POINT SIGNAL
int main(int argc, char** argv) {
  if (argc != 6) return 2;
  fault_at = std::atoi(argv[4]);
  fault_signal = std::atoi(argv[5]);
  try {
    return run(argv[1], std::strtoul(argv[2], nullptr, 10), std::atoi(argv[3]));
  } catch (const drun::Error& e) {
    std::printf("error %d rank %d host '%s': %s\n", e.code, e.rank, e.host.c_str(), e.what());
    return 3;
  }
}
