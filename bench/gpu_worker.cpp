#include "bench/gpu_worker.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstring>

#include "base/fd.h"

asm(".section .rodata\n"
    ".balign 16\n"
    ".hidden drun_gpu_worker\n"
    ".globl drun_gpu_worker\n"
    "drun_gpu_worker:\n"
    ".incbin \"" DRUN_GPU_WORKER
    "\"\n"
    ".hidden drun_gpu_worker_end\n"
    ".globl drun_gpu_worker_end\n"
    "drun_gpu_worker_end:\n"
    ".byte 0\n"
    ".previous\n");
extern "C" const char drun_gpu_worker[], drun_gpu_worker_end[];

namespace drun::bench {

namespace {

#ifndef MFD_EXEC
#define MFD_EXEC 0x0010U  // Linux 6.3: without it vm.memfd_noexec may make memory that can't be executed
#endif

}  // namespace

Error become_gpu_worker(char** argv) {
  const auto failed = [](const char* what) {
    return Error(Errc::kInternal, "--backend nccl", std::string(what) + ": " + std::strerror(errno));
  };
  Fd program(::memfd_create("drun-bench", MFD_CLOEXEC | MFD_EXEC));
  if (!program && errno == EINVAL) program = Fd(::memfd_create("drun-bench", MFD_CLOEXEC));
  if (!program && errno == EACCES) {
    return Error(Errc::kInternal, "--backend nccl", "this host executes nothing in memory: vm.memfd_noexec is 2")
        .with_hint("sysctl vm.memfd_noexec=1, as root on that host");
  }
  if (!program) return failed("no memory for the worker");
  const std::string_view bytes(drun_gpu_worker, static_cast<std::size_t>(drun_gpu_worker_end - drun_gpu_worker));
  if (auto ok = write_all(program.get(), bytes); !ok) return ok.error();
  ::fexecve(program.get(), argv, environ);
  // The program links only libc.
  return failed("this host can't run the worker, which needs glibc");
}

}  // namespace drun::bench
