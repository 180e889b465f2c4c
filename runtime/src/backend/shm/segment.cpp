#include "runtime/src/backend/shm/segment.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string>

namespace drun::runtime {
namespace {

constexpr std::size_t kPage = 4096;
constexpr std::size_t kAllotBytes = 1u << 20;

std::size_t control_bytes(int n_ranks) {
  const std::size_t n_bytes = static_cast<std::size_t>(n_ranks) * sizeof(Segment::Control);
  return (n_bytes + kPage - 1) / kPage * kPage;
}

std::string in_mib(std::size_t n_bytes) { return std::to_string((n_bytes + (1u << 20) - 1) >> 20) + " MiB"; }

Error memory_error(int number, const char* what, std::size_t n_bytes, int n_ranks) {
  Error error = errno_error(number, what);
  error.cause = "no shared memory of " + in_mib(n_bytes) + " for " + std::to_string(n_ranks) + " ranks: " + error.cause;
  return error;
}

}  // namespace

std::size_t Segment::bytes_for(int n_ranks) {
  return control_bytes(n_ranks) + static_cast<std::size_t>(n_ranks) * 4 * kSlotBytes;
}

Segment::Segment(void* memory, int n_ranks)
    : n_ranks_(n_ranks),
      n_bytes_(bytes_for(n_ranks)),
      memory_(memory),
      controls_(static_cast<Control*>(memory)),
      slots_(static_cast<char*>(memory) + control_bytes(n_ranks)) {}

Segment::~Segment() { ::munmap(memory_, n_bytes_); }

// To nothing first: what comes back is zero, also where an earlier drun_init has left something. All its pages are
// claimed now, since a lack of them would be a SIGBUS later.
Result<std::shared_ptr<Segment>> Segment::create(int memory_fd, int n_ranks) {
  const std::size_t n_bytes = bytes_for(n_ranks);
  if (::ftruncate(memory_fd, 0) != 0) return fail(memory_error(errno, "ftruncate", n_bytes, n_ranks));
  int failed = 0;
  for (std::size_t done = 0; done < n_bytes && failed == 0;) {
    // A part at a time: a signal makes the kernel give back what it has allotted in the same call.
    const std::size_t n = std::min(kAllotBytes, n_bytes - done);
    failed = ::posix_fallocate(memory_fd, static_cast<off_t>(done), static_cast<off_t>(n));
    if (failed == EINTR) {
      failed = 0;
    } else {
      done += n;
    }
  }
  if (failed != 0) return fail(memory_error(failed, "posix_fallocate", n_bytes, n_ranks));
  return map(memory_fd, n_ranks);
}

Result<std::shared_ptr<Segment>> Segment::map(int memory_fd, int n_ranks) {
  const std::size_t n_bytes = bytes_for(n_ranks);
  struct stat file {};
  if (::fstat(memory_fd, &file) != 0) return fail(memory_error(errno, "fstat", n_bytes, n_ranks));
  if (static_cast<std::size_t>(file.st_size) != n_bytes) {
    return fail(Errc::kProtocol, "the host's shared memory has " + std::to_string(file.st_size) +
                                     " bytes in place of " + std::to_string(n_bytes) +
                                     ": not all ranks have the same libdrun");
  }
  void* memory = ::mmap(nullptr, n_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, memory_fd, 0);
  if (memory == MAP_FAILED) return fail(memory_error(errno, "mmap", n_bytes, n_ranks));
  return std::shared_ptr<Segment>(new Segment(memory, n_ranks));
}

}  // namespace drun::runtime
