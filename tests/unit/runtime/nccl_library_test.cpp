// Finding NCCL, and the decision of a communicator's members to use it. Needs no GPU. Also tests the real library, if
// it is installed.
#include "runtime/src/gpu/nccl_library.h"

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "runtime/src/gpu/hang_guard.h"
#include "runtime/src/gpu/nccl_members.h"
#include "tests/temp_folder.h"

namespace drun::runtime::gpu {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class NcclLibrary : public ::testing::Test {
 protected:
  void TearDown() override { ::unsetenv("DRUN_FAKE_NCCL"); }
};

TEST_F(NcclLibrary, HasAVersionAndAPath) {
  Nccl nccl;
  std::string why_not;
  ASSERT_TRUE(open_nccl(FAKE_NCCL, false, nccl, why_not)) << why_not;
  EXPECT_EQ(nccl.version, 22809);
  EXPECT_EQ(nccl_version_text(nccl.version), "2.28.9");
  EXPECT_THAT(nccl.path, HasSubstr("libnccl.so.2"));
  EXPECT_NE(nccl.AllReduce, nullptr);
  EXPECT_EQ(nccl.cuda, 13000);
}

TEST_F(NcclLibrary, NeedsADriverOfItsMajorVersionOfCuda) {
  Nccl nccl;
  nccl.version = 22809;
  nccl.cuda = 13010;
  nccl.path = "/lib/libnccl.so.2";
  EXPECT_EQ(why_not_with_driver(nccl, 13010), "");
  EXPECT_EQ(why_not_with_driver(nccl, 13000), "");
  EXPECT_EQ(why_not_with_driver(nccl, 14020), "");
  EXPECT_EQ(why_not_with_driver(nccl, 12080),
            "NCCL 2.28.9 is made for CUDA 13.1, and the host's driver knows CUDA up to 12.8 (/lib/libnccl.so.2)");
  nccl.cuda = 0;  // unknown
  EXPECT_EQ(why_not_with_driver(nccl, 9000), "");
}

TEST(Nccl, MadeForCuda13HasNoCodeForPascalAndVolta) {
  Nccl nccl;
  nccl.version = 22809;
  nccl.cuda = 13000;
  nccl.path = "/lib/libnccl.so.2";
  EXPECT_EQ(why_not_with_gpu(nccl, 75), "");
  EXPECT_EQ(
      why_not_with_gpu(nccl, 61),
      "NCCL 2.28.9 is made for CUDA 13.0, which has no code for this GPU (compute capability 6.1): use one that is "
      "made for CUDA 12 (/lib/libnccl.so.2)");
  nccl.cuda = 12090;
  EXPECT_EQ(why_not_with_gpu(nccl, 61), "");
}

TEST_F(NcclLibrary, SaysWhyOneWillNotDo) {
  Nccl nccl;
  std::string why_not;
  EXPECT_FALSE(open_nccl("/no/such/libnccl.so.2", false, nccl, why_not));
  EXPECT_THAT(why_not, HasSubstr("/no/such/libnccl.so.2"));
  EXPECT_FALSE(open_nccl(FAKE_CUDA, false, nccl, why_not));
  EXPECT_THAT(why_not, AllOf(HasSubstr("is no NCCL"), HasSubstr("ncclGetVersion")));
  EXPECT_FALSE(open_nccl(BARE_NCCL, false, nccl, why_not));
  EXPECT_THAT(why_not, AllOf(HasSubstr("2.28.9, can't be used"), HasSubstr("it has no ncclGetErrorString")));
  ::setenv("DRUN_FAKE_NCCL", "version=21703", 1);
  EXPECT_FALSE(open_nccl(FAKE_NCCL, false, nccl, why_not));
  EXPECT_THAT(why_not, HasSubstr("NCCL 2.17.3, which is too old: drun needs 2.18.0"));
}

TEST_F(NcclLibrary, IsLookedForWhereItsUserSaysElseInThePythonEnvironment) {
  EXPECT_THAT(nccl_candidates("/my/libnccl.so", [](const char*) -> const char* { return nullptr; }),
              ElementsAre("/my/libnccl.so"));
  char folder[] = "/tmp/drun-nccl-XXXXXX";
  ASSERT_NE(::mkdtemp(folder), nullptr);
  static std::string venv;
  venv = folder;
  const std::string lib = venv + "/lib/python3.11/site-packages/nvidia/nccl/lib";
  std::filesystem::create_directories(lib);
  std::ofstream(lib + "/libnccl.so.2") << "x";
  const auto found = nccl_candidates(
      "", [](const char* name) -> const char* { return std::string(name) == "VIRTUAL_ENV" ? venv.c_str() : nullptr; });
  std::filesystem::remove_all(venv);
  ASSERT_GE(found.size(), 2u);
  EXPECT_EQ(found[0], lib + "/libnccl.so.2");
  EXPECT_EQ(found[1], "libnccl.so.2");
}

TEST_F(NcclLibrary, IsLookedForBesideThePythonInPath) {
  const drun::testing::TempFolder folder;
  static std::string path;
  path = folder.path("nothing") + "::" + folder.path("venv/bin") + ":" + folder.path("other/bin");
  for (const char* prefix : {"venv", "base", "other"}) {
    const std::string lib = folder.path(std::string(prefix) + "/lib/python3.12/site-packages/nvidia/nccl/lib");
    std::filesystem::create_directories(lib);
    std::filesystem::create_directories(folder.path(std::string(prefix) + "/bin"));
    std::ofstream(lib + "/libnccl.so.2") << "x";
  }
  std::filesystem::create_symlink("/bin/true", folder.path("other/bin/python3"));
  std::ofstream(folder.path("base/bin/python3")) << "x";
  std::filesystem::permissions(folder.path("base/bin/python3"), std::filesystem::perms::owner_all);
  std::filesystem::create_symlink("../../base/bin/python3", folder.path("venv/bin/python3"));
  const auto found = nccl_candidates(
      "", [](const char* name) -> const char* { return std::string(name) == "PATH" ? path.c_str() : nullptr; });
  ASSERT_GE(found.size(), 3u);
  EXPECT_EQ(std::filesystem::canonical(found[0]),
            folder.path("venv/lib/python3.12/site-packages/nvidia/nccl/lib/libnccl.so.2"));
  EXPECT_EQ(std::filesystem::canonical(found[1]),
            folder.path("base/lib/python3.12/site-packages/nvidia/nccl/lib/libnccl.so.2"));
  EXPECT_EQ(found[2], "libnccl.so.2");
}

// Without a GPU NCCL returns its version and an id, and a CUDA error for everything else. The library stays loaded.
TEST_F(NcclLibrary, TheRealOneIsUsedAsItIs) {
  const std::string path = REAL_NCCL;
  if (path.empty()) GTEST_SKIP() << "NCCL is not installed here";
  Nccl nccl;
  std::string why_not;
  ASSERT_TRUE(open_nccl(path, false, nccl, why_not)) << why_not;
  EXPECT_GE(nccl.version, kOldestNccl);
  EXPECT_GE(nccl.cuda, 11000);
  EXPECT_LT(nccl.cuda, 100'000);
  NcclId first{}, second{};
  ASSERT_EQ(nccl.GetUniqueId(&first), kNcclSuccess) << nccl.GetLastError(nullptr);
  ASSERT_EQ(nccl.GetUniqueId(&second), kNcclSuccess);
  EXPECT_NE(std::string(first.bytes, sizeof first.bytes), std::string(second.bytes, sizeof second.bytes));
  if (::access("/dev/nvidiactl", F_OK) == 0) GTEST_SKIP() << "there may be a GPU";
  NcclHandle comm = nullptr;
  NcclConfig config;  // version 2.18's, which newer libraries accept
  const auto result = nccl.CommInitRankConfig(&comm, 1, first, 0, &config);
  EXPECT_NE(result, kNcclSuccess);
  EXPECT_THAT(std::string(nccl.GetErrorString(result)), HasSubstr("unhandled cuda error"));
}

NcclMember member(unsigned char device, const std::string& machine = "host 0") {
  NcclMember out;
  out.version = 22809;
  out.path = "/lib/libnccl.so.2";
  out.device.bytes[15] = device;
  out.bus_id = "0000:0" + std::to_string(device) + ":00.0";
  out.machine = machine;
  return out;
}
const std::vector<std::string> kNames = {"rank 0 on a", "rank 1 on a", "rank 2 on b"};

TEST(NcclMembers, HaveKernelsIfAllHave) {
  auto one = member(1), other = member(2);
  one.has_kernels = other.has_kernels = true;
  EXPECT_TRUE(decode_member(encode_member(one)).has_kernels);
  EXPECT_FALSE(decode_member(encode_member(one)).may_share);
  EXPECT_TRUE(decide_nccl({one, other}, kNames)->has_kernels);
  other.has_kernels = false;
  EXPECT_FALSE(decide_nccl({one, other}, kNames)->has_kernels);
}

TEST(NcclMembers, SplitWhatAllWouldSplit) {
  auto one = member(1), other = member(2);
  one.splits_local = other.splits_local = other.splits_cross = true;
  EXPECT_TRUE(decode_member(encode_member(one)).splits_local);
  EXPECT_FALSE(decode_member(encode_member(one)).splits_cross);
  EXPECT_TRUE(decode_member(encode_member(other)).splits_cross);
  EXPECT_TRUE(decide_nccl({one, other}, kNames)->splits_local);
  EXPECT_FALSE(decide_nccl({one, other}, kNames)->splits_cross);
}

TEST(NcclMembers, SurviveTheWay) {
  NcclMember one = member(7, "my host");
  one.why_not = std::string(1000, 'x');
  one.may_share = true;
  const std::string bytes = encode_member(one);
  EXPECT_EQ(bytes.size(), kNcclMemberBytes);
  const auto back = decode_member(bytes);
  EXPECT_EQ(back.why_not, std::string(200, 'x'));
  EXPECT_EQ(back.version, 22809);
  EXPECT_EQ(back.path, "/lib/libnccl.so.2");
  EXPECT_EQ(back.machine, "my host");
  EXPECT_EQ(back.bus_id, "0000:07:00.0");
  EXPECT_EQ(uuid_text(back.device), "GPU-00000000-0000-0000-0000-000000000007");
  EXPECT_TRUE(back.may_share);
  EXPECT_NE(decode_member("nonsense").why_not, "");
}

TEST(NcclMembers, UseItIfAllHaveTheSame) {
  const auto decision = decide_nccl({member(1), member(2), member(1, "host 1")}, kNames);
  ASSERT_TRUE(decision);
  EXPECT_TRUE(decision->use);
}

TEST(NcclMembers, GoThroughTheHostIfOneHasNone) {
  auto without = member(2);
  without.why_not = "libnccl.so.2: cannot open shared object file";
  const auto one = decide_nccl({member(1), without, member(3, "b")}, kNames);
  ASSERT_TRUE(one);
  EXPECT_FALSE(one->use);
  EXPECT_EQ(one->why_not, "rank 1 on a has no NCCL that it can use: libnccl.so.2: cannot open shared object file");
  const auto two = decide_nccl({member(1), without, without}, kNames);
  EXPECT_THAT(two->why_not, HasSubstr("(nor has one other)"));
}

TEST(NcclMembers, RefuseDifferentVersionsByName) {
  auto other = member(2);
  other.version = 22703;
  other.path = "/opt/libnccl.so.2";
  const auto decision = decide_nccl({member(1), member(2), other}, kNames);
  ASSERT_FALSE(decision);
  EXPECT_EQ(decision.error().status, DRUN_ERROR_MISMATCH);
  EXPECT_THAT(decision.error().text,
              AllOf(HasSubstr("rank 0 on a has NCCL 2.28.9 (/lib/libnccl.so.2)"),
                    HasSubstr("rank 2 on b has NCCL 2.27.3 (/opt/libnccl.so.2)"), HasSubstr("DRUN_NCCL_LIB")));
}

TEST(NcclMembers, RefuseToShareAGpuUnlessTheyMay) {
  const auto refused = decide_nccl({member(1), member(1), member(1, "host 1")}, kNames);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().text, AllOf(StartsWith("rank 0 on a and rank 1 on a use the same GPU, GPU-00000000-"),
                                          HasSubstr("DRUN_SHARED_GPU=1")));
  auto first = member(1), second = member(1);
  first.may_share = second.may_share = true;
  const auto shared = decide_nccl({first, second}, kNames);
  ASSERT_TRUE(shared);
  EXPECT_FALSE(shared->use);
  // They may share a GPU if NCCL takes their machines for two hosts.
  EXPECT_TRUE(decide_nccl({member(1, "fake0"), member(1, "fake1")}, kNames)->use);
}

TEST(NcclMembers, RefusePartsOfOneGpu) {
  auto part = member(2);
  part.bus_id = member(1).bus_id;
  const auto refused = decide_nccl({member(1), part}, kNames);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().text,
              StartsWith("rank 0 on a and rank 1 on a use parts (MIG) of the same GPU, at 0000:01:00.0, which NCCL"));
}

TEST(HangGuard, EndsAProcessWhoseFunctionDoesNotComeBack) {
  ::testing::GTEST_FLAG(death_test_style) = "threadsafe";
  EXPECT_EXIT(
      {
        const HangGuard guard("rank 0 on a", "ncclCommAbort", std::chrono::milliseconds(1000));
        ::sleep(30);
      },
      ::testing::ExitedWithCode(75), "drun: error: rank 0 on a: ncclCommAbort has not come back for 1 s");
}

TEST(HangGuard, LetsGoWhatComesBack) {
  for (int i = 0; i < 3; ++i) {
    const HangGuard guard("rank 0 on a", "ncclCommAbort", std::chrono::milliseconds(500));
  }
  ::usleep(900'000);
}

}  // namespace
}  // namespace drun::runtime::gpu
