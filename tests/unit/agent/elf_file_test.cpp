#include "agent/elf_file.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>

#include "base/fd.h"
#include "tests/temp_folder.h"

namespace drun::agent {
namespace {

class ElfFile : public ::testing::Test {
 protected:
  std::string file(const std::string& bytes) const {
    folder_.write("file", bytes);
    return folder_.path("file");
  }
  drun::testing::TempFolder folder_;
};

TEST_F(ElfFile, NamesTheLibrariesThatItNeeds) {
  const auto own = needed_libraries("/proc/self/exe");
  EXPECT_EQ(std::count(own.begin(), own.end(), "libc.so.6"), 1);
  EXPECT_EQ(mpi_library(own), "");
  EXPECT_EQ(foreign_machine("/proc/self/exe"), "");
}

TEST_F(ElfFile, OthersNeedNone) {
  EXPECT_TRUE(needed_libraries("/nonexistent").empty());
  EXPECT_TRUE(needed_libraries("/tmp").empty());
  for (const std::string text : {"", "#!/bin/sh\nexit 0\n",
                                 "\x7f"
                                 "ELF"}) {
    EXPECT_TRUE(needed_libraries(file(text)).empty()) << text;
    EXPECT_EQ(foreign_machine(file(text)), "") << text;
  }
}

// A file's headers may contain anything.
TEST_F(ElfFile, BrokenOnesAreReadWithinTheirBounds) {
  const auto whole = read_file("/bin/true");
  ASSERT_TRUE(whole);
  std::mt19937 random(5);
  for (int i = 0; i < 400; ++i) {
    std::string bytes = whole->substr(0, i % 2 == 0 ? whole->size() : random() % whole->size());
    for (int k = 0; k < 4 && bytes.size() > 64; ++k)
      bytes[4 + random() % 1000 % (bytes.size() - 4)] = static_cast<char>(random());
    for (const auto& name : needed_libraries(file(bytes))) EXPECT_LE(name.size(), 255u);
  }
}

TEST(MpiLibrary, IsFoundAmongOthers) {
  EXPECT_EQ(mpi_library({"libm.so.6", "libmpi.so.40", "libc.so.6"}), "libmpi.so.40");
  for (const char* name :
       {"libmpich.so.12", "libmpi.so.12", "libmpi_cxx.so.40", "libmpifort.so.12", "libmpi_cray.so.12"}) {
    EXPECT_EQ(mpi_library({name}), name);
  }
  for (const char* name : {"libmpir.so.23", "libmpiexpat.so", "libc.so.6"}) EXPECT_EQ(mpi_library({name}), "") << name;
}

}  // namespace
}  // namespace drun::agent
