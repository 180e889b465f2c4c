#include "runtime/src/backend/shm/arena.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <string>
#include <utility>

namespace drun::runtime {
namespace {

// A multiple of every kernel's page size, because mmap takes no other offset: 64 KiB on some of ARM.
constexpr std::size_t kPage = 64u << 10;
constexpr std::size_t kAllotBytes = 1u << 20;
constexpr std::uint64_t kLayout = 0x6472'756e'0000'0006;  // "drun", and the version of the memory's layout

std::size_t whole_pages(std::size_t n_bytes) { return (n_bytes + kPage - 1) / kPage * kPage; }

// Allocates pages by posix_fallocate, a part at a time: on a signal the kernel frees what it has allocated in the same
// call.
int claim(int fd, std::size_t offset, std::size_t n_bytes) {
  for (std::size_t done = 0; done < n_bytes;) {
    const std::size_t n = std::min(kAllotBytes, n_bytes - done);
    const int failed = ::posix_fallocate(fd, static_cast<off_t>(offset + done), static_cast<off_t>(n));
    if (failed == EINTR) continue;
    if (failed != 0) return failed;
    done += n;
  }
  return 0;
}

// Gives pages back to the system; they are zero afterwards.
int punch(int fd, std::size_t offset, std::size_t n_bytes) {
  return ::fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(offset),
                     static_cast<off_t>(n_bytes));
}

}  // namespace

struct Arena::Header {
  std::uint64_t layout;
  std::atomic<std::uint64_t> end;  // of the bytes in use
};

Arena::~Arena() { ::munmap(header_, kPage); }

Result<std::shared_ptr<Arena>> Arena::open(Fd memory) {
  void* header = ::mmap(nullptr, kPage, PROT_READ | PROT_WRITE, MAP_SHARED, memory.get(), 0);
  if (header == MAP_FAILED) return fail(errno_error(errno, "mmap"));
  return std::shared_ptr<Arena>(new Arena(std::move(memory), header));
}

// Empties the file first of what an earlier drun_init has left, by a hole: it is sealed against shrinking.
Result<std::shared_ptr<Arena>> Arena::create(Fd memory) {
  const auto failed = [](int error, const char* what) {
    return drun::fail(errno_error(error, std::string("no shared memory: ") + what));
  };
  struct stat file {};
  if (::fstat(memory.get(), &file) != 0) return failed(errno, "fstat");
  if (file.st_size > 0 && punch(memory.get(), 0, static_cast<std::size_t>(file.st_size)) != 0)
    return failed(errno, "fallocate");
  if (const int error = claim(memory.get(), 0, kPage); error != 0) return failed(error, "posix_fallocate");
  auto arena = open(std::move(memory));
  if (!arena) return arena;
  (*arena)->header_->layout = kLayout;
  (*arena)->header_->end.store(kPage);
  return arena;
}

Result<std::shared_ptr<Arena>> Arena::join(Fd memory) {
  struct stat file {};
  if (::fstat(memory.get(), &file) != 0) return fail(errno_error(errno, "fstat"));
  if (static_cast<std::size_t>(file.st_size) >= kPage) {
    auto arena = open(std::move(memory));
    if (!arena || (*arena)->header_->layout == kLayout) return arena;
  }
  return fail(Errc::kProtocol, "the host's shared memory was not set up by this libdrun: not all ranks have the same");
}

Result<std::size_t> Arena::reserve(std::size_t n_bytes) {
  const std::size_t offset = header_->end.fetch_add(whole_pages(n_bytes));
  if (const int failed = claim(memory_.get(), offset, n_bytes); failed != 0) {
    release(offset, n_bytes);
    return fail(errno_error(failed, "posix_fallocate"));
  }
  return offset;
}

Result<void*> Arena::map(std::size_t offset, std::size_t n_bytes) const {
  void* memory =
      ::mmap(nullptr, n_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, memory_.get(), static_cast<off_t>(offset));
  if (memory == MAP_FAILED) return fail(errno_error(errno, "mmap"));
  return memory;
}

void Arena::release(std::size_t offset, std::size_t n_bytes) const {
  (void)punch(memory_.get(), offset, whole_pages(n_bytes));
}

}  // namespace drun::runtime
