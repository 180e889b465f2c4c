#include "base/memory_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

namespace drun {
namespace {

TEST(MemoryFile, CanBeSealedAndNotBeExecuted) {
  const auto file = make_memory_file("test");
  ASSERT_TRUE(file) << file.error().message();
  constexpr int kSealExec = 0x0020;  // F_SEAL_EXEC of Linux 6.3
  const int seals = ::fcntl(file->get(), F_GET_SEALS);
  EXPECT_EQ(seals & ~kSealExec, 0);
  const Fd probe(::memfd_create("probe", MFD_CLOEXEC | 0x0008U));
  EXPECT_EQ(seals, probe ? kSealExec : 0) << "sealed if the kernel knows the flag";
  EXPECT_EQ(::ftruncate(file->get(), 4096), 0);
  EXPECT_EQ(::fcntl(file->get(), F_ADD_SEALS, F_SEAL_SHRINK), 0);
  EXPECT_NE(::ftruncate(file->get(), 0), 0);
  EXPECT_EQ(::ftruncate(file->get(), 8192), 0);
}

}  // namespace
}  // namespace drun
