// memory_worker N_BYTES: runs large collectives; prints the peak memory of this rank besides the buffers of its calls.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>

#include "drun/drun.hpp"

namespace {

// Returns KiB, including memory shared with other processes.
long peak_kib() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.rfind("VmHWM:", 0) == 0) return std::atol(line.c_str() + 6);
  }
  return -1;
}

int run(std::size_t n_bytes) {
  drun::Communicator all;
  // One buffer: every call is in place. Its pages are touched before anything is measured.
  auto* data = static_cast<char*>(std::malloc(n_bytes));
  if (data == nullptr) return 4;
  std::memset(data, 0, n_bytes);
  const auto size = static_cast<std::size_t>(all.size()), rank = static_cast<std::size_t>(all.rank());
  for (const drun_dtype dtype : {DRUN_FLOAT32, DRUN_BFLOAT16}) {
    const std::size_t element = dtype == DRUN_FLOAT32 ? 4 : 2, count = n_bytes / element, block = count / size;
    char* own = data + rank * block * element;
    drun::check(drun_allreduce(data, data, count, dtype, DRUN_SUM, all.c(), nullptr));
    drun::check(drun_reduce_scatter(data, own, block, dtype, DRUN_SUM, all.c(), nullptr));
    drun::check(drun_allgather(own, data, block, dtype, all.c(), nullptr));
  }
  std::printf("beside: %ld KiB\n", peak_kib() - static_cast<long>(n_bytes / 1024));
  std::free(data);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 0);
  } catch (const drun::Error& e) {
    std::printf("%s\n", e.what());
    return 3;
  }
}
