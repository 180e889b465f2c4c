#include "base/memory_file.h"

#include <sys/mman.h>

#include <cerrno>

namespace drun {

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008U  // Linux 6.3
#endif

Result<Fd> make_memory_file(const char* name) {
  Fd file(::memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_NOEXEC_SEAL));
  if (!file && errno == EINVAL) file = Fd(::memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING));  // an older kernel
  if (!file) return fail(errno_error(errno, "memfd_create"));
  return file;
}

}  // namespace drun
