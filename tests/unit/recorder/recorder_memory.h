// A recorder's memory as the agent makes it, for tests of its writers and readers.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <memory>

#include "base/fd.h"
#include "recorder/reader.h"
#include "runtime/src/recorder.h"

namespace drun::recorder {

class RecorderMemory {
 public:
  explicit RecorderMemory(std::uint32_t n_entries)
      : fd_(::memfd_create("test", MFD_CLOEXEC)), n_bytes_(bytes_for(n_entries)) {
    if (::ftruncate(fd_.get(), static_cast<off_t>(n_bytes_)) != 0) std::abort();
    place_ = ::mmap(nullptr, n_bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, fd_.get(), 0);
    header()->magic = kMagic;
    header()->entry_bytes = sizeof(Entry);
    header()->n_entries = n_entries;
    header()->rank = -1;
    reader = std::make_unique<Reader>(place_, n_entries);
  }
  ~RecorderMemory() { ::munmap(place_, n_bytes_); }
  RecorderMemory(const RecorderMemory&) = delete;
  RecorderMemory& operator=(const RecorderMemory&) = delete;

  const Fd& fd() const { return fd_; }
  Header* header() { return static_cast<Header*>(place_); }
  char* bytes() { return static_cast<char*>(place_); }
  std::size_t n_bytes() const { return n_bytes_; }
  std::shared_ptr<runtime::Recorder> writer(int rank = 3) { return runtime::Recorder::open(fd_, rank); }

  std::unique_ptr<Reader> reader;

 private:
  Fd fd_;
  std::size_t n_bytes_;
  void* place_ = nullptr;
};

inline runtime::Operation operation(runtime::OpKind kind, std::uint64_t seq, std::string name = "") {
  runtime::Operation out;
  out.kind = kind;
  out.seq = seq;
  out.count = seq * 3;
  out.dtype = DRUN_FLOAT32;
  out.name = std::move(name);
  return out;
}

}  // namespace drun::recorder
