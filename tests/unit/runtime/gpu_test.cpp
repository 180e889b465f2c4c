// Collectives on device memory, through the host. The fake of NVIDIA's driver has device memory that the processor
// can't touch. docs/gpu.md.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "runtime/src/gpu/driver.h"
#include "runtime/src/gpu/presence.h"
#include "tests/unit/runtime/fake_gpu.h"
#include "tests/unit/runtime/fake_job.h"

namespace drun::runtime {
namespace {

using testing::FakeJob;

using testing::Device;
using testing::fake;
using testing::ramp;
using testing::repeated;

class Gpu : public ::testing::Test {
 protected:
  void SetUp() override { fake(); }
  void TearDown() override { ::unsetenv("DRUN_FAKE_CUDA"); }
  static void run(int size, const std::function<void(Communicator& all)>& body,
                  std::chrono::milliseconds timeout = std::chrono::seconds(30)) {
    FakeJob job(size, timeout);
    job.run([&](int rank) {
      auto all = Communicator::create(job.job_context(rank));
      ASSERT_TRUE(all) << all.error().text;
      body(**all);
      EXPECT_EQ(fake().n_contexts(), 0);  // the program's context is current again
    });
  }
};

TEST_F(Gpu, TheDriverIsFoundOnceItIsLoaded) {
  ASSERT_NE(gpu::loaded_driver(), nullptr);
  EXPECT_EQ(gpu::loaded_driver()->name_of(1), "CUDA_ERROR_INVALID_VALUE");
  EXPECT_EQ(gpu::loaded_driver()->name_of(12345), "error 12345");
}

// The result of find_gpu() with this environment and these files in place of /dev.
class GpuPresence : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = (std::filesystem::temp_directory_path() / "drun-dev-XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = name;
    told() = {};
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  void has(const std::string& file) { std::ofstream(folder_ / file) << ""; }
  gpu::Presence poll() {
    return gpu::find_gpu(
        [](const char* name) -> const char* {
          const auto found = told().find(name);
          return found == told().end() ? nullptr : found->second.c_str();
        },
        folder_.string());
  }
  static std::map<std::string, std::string>& told() {
    static std::map<std::string, std::string> environment;
    return environment;
  }
  std::filesystem::path folder_;
};

TEST_F(GpuPresence, IsWhatTheDevicesSay) {
  EXPECT_EQ(poll(), gpu::Presence::kNoDriver);
  has("nvidiactl");
  EXPECT_EQ(poll(), gpu::Presence::kNoDevice);
  has("nvidia-uvm");
  EXPECT_EQ(poll(), gpu::Presence::kNoDevice);
  has("nvidia7");  // as in a container that got one GPU
  EXPECT_EQ(poll(), gpu::Presence::kThere);
  for (const char* none : {"", "-1"}) {
    told()["CUDA_VISIBLE_DEVICES"] = none;
    EXPECT_EQ(poll(), gpu::Presence::kHidden) << none;
  }
  told()["CUDA_VISIBLE_DEVICES"] = "0";
  EXPECT_EQ(poll(), gpu::Presence::kThere);
  told()["DRUN_GPU"] = "0";
  EXPECT_EQ(poll(), gpu::Presence::kDenied);
}

TEST_F(GpuPresence, IsToldByTheEnvironmentFirst) {
  told()["DRUN_GPU"] = "1";
  EXPECT_EQ(poll(), gpu::Presence::kThere);
  told()["DRUN_GPU"] = "";
  EXPECT_EQ(poll(), gpu::Presence::kNoDriver);
  has("dxg");
  EXPECT_EQ(poll(), gpu::Presence::kThere);
}

TEST_F(GpuPresence, HasAReasonForEachThatIsNone) {
  std::set<std::string> reasons;
  for (const auto presence : {gpu::Presence::kDenied, gpu::Presence::kHidden, gpu::Presence::kNoDriver,
                              gpu::Presence::kForbidden, gpu::Presence::kNoDevice}) {
    EXPECT_EQ(gpu::presence_of(static_cast<int>(presence)), presence);
    EXPECT_GT(std::strlen(gpu::text_of(presence)), 5u);
    EXPECT_TRUE(reasons.insert(gpu::text_of(presence)).second) << gpu::text_of(presence);
  }
  EXPECT_EQ(gpu::presence_of(-1), gpu::Presence::kNoDriver);  // an invalid number from another process
  EXPECT_EQ(gpu::presence_of(63), gpu::Presence::kNoDriver);
}

TEST_F(Gpu, AllreduceAndItsLike) {
  for (const int size : {1, 2, 3}) {
    run(size, [size](Communicator& all) {
      const auto rank = static_cast<float>(all.rank());
      for (const std::size_t n : {std::size_t{0}, std::size_t{1}, std::size_t{1000}, std::size_t{300000}}) {
        const Device send(n, rank + 1), recv(n, -1);
        ASSERT_DONE(all.allreduce(send.get(), recv.get(), n, DRUN_FLOAT32, DRUN_SUM));
        EXPECT_EQ(recv.values(), repeated(n, static_cast<float>(size * (size + 1) / 2)));
        EXPECT_EQ(send.values(), repeated(n, rank + 1));
        ASSERT_DONE(all.allreduce(send.get(), send.get(), n, DRUN_FLOAT32, DRUN_MAX));  // in place
        EXPECT_EQ(send.values(), repeated(n, static_cast<float>(size)));
      }
      const Device send(10, rank), recv(10, -1);
      ASSERT_DONE(all.reduce(send.get(), recv.get(), 10, DRUN_FLOAT32, DRUN_SUM, size - 1));
      EXPECT_EQ(recv.values(), repeated(10, all.rank() == size - 1 ? static_cast<float>(size * (size - 1) / 2) : -1));
      const auto blocks = static_cast<std::size_t>(size);
      const Device parts(ramp(4 * blocks, 0)), part(4, -1);
      ASSERT_DONE(all.reduce_scatter(parts.get(), part.get(), 4, DRUN_FLOAT32, DRUN_SUM));
      auto expected = ramp(4, 4 * rank);
      for (float& value : expected) value *= static_cast<float>(size);
      EXPECT_EQ(part.values(), expected);
    });
  }
}

TEST_F(Gpu, MovesBetweenRanks) {
  constexpr int kSize = 3;
  run(kSize, [](Communicator& all) {
    const auto rank = static_cast<std::size_t>(all.rank());
    const auto own = static_cast<float>(rank);
    const Device data(5, own);
    ASSERT_DONE(all.broadcast(data.get(), 5, DRUN_FLOAT32, 1));
    EXPECT_EQ(data.values(), repeated(5, 1));

    const Device one(2, own), gathered(2 * kSize, -1);
    ASSERT_DONE(all.allgather(one.get(), gathered.get(), 2, DRUN_FLOAT32));
    EXPECT_EQ(gathered.values(), (std::vector<float>{0, 0, 1, 1, 2, 2}));
    const Device in_place(2 * kSize, own);
    ASSERT_DONE(all.allgather(in_place.get() + 2 * rank, in_place.get(), 2, DRUN_FLOAT32));
    EXPECT_EQ(in_place.values(), (std::vector<float>{0, 0, 1, 1, 2, 2}));

    // The gaps between the blocks don't change.
    const std::size_t counts[] = {1, 2, 1}, offsets[] = {0, 2, 5};
    const Device mine(counts[rank], own), spread(7, -1);
    ASSERT_DONE(all.allgatherv(mine.get(), counts[rank], spread.get(), counts, offsets, DRUN_FLOAT32));
    EXPECT_EQ(spread.values(), (std::vector<float>{0, -1, 1, 1, -1, 2, -1}));

    const Device at_root(2 * kSize, -1);
    ASSERT_DONE(all.gather(one.get(), at_root.get(), 2, DRUN_FLOAT32, 2));
    EXPECT_EQ(at_root.values(), rank == 2 ? (std::vector<float>{0, 0, 1, 1, 2, 2}) : repeated(2 * kSize, -1));
    const Device given(ramp(2 * kSize, 10)), got(2, -1);
    ASSERT_DONE(all.scatter(given.get(), got.get(), 2, DRUN_FLOAT32, 0));
    EXPECT_EQ(got.values(), ramp(2, 10 + 2 * own));

    const Device from(ramp(kSize, 10 * own)), to(kSize, -1);
    ASSERT_DONE(all.alltoall(from.get(), to.get(), 1, DRUN_FLOAT32));
    EXPECT_EQ(to.values(), (std::vector<float>{own, 10 + own, 20 + own}));
    const std::size_t one_each[] = {1, 1, 1}, apart[] = {0, 2, 4};
    const Device holes(6, -1);
    ASSERT_DONE(all.alltoallv(from.get(), one_each, nullptr, holes.get(), one_each, apart, DRUN_FLOAT32));
    EXPECT_EQ(holes.values(), (std::vector<float>{own, -1, 10 + own, -1, 20 + own, -1}));

    // Both directions at once: neither rank may wait for the other first.
    const int next = static_cast<int>(rank + 1) % kSize, before = static_cast<int>(rank + 2) % kSize;
    const Device sent(200000, own), received(200000, -1);
    ASSERT_DONE(all.transfer({{OpKind::kSend, sent.get(), 200000, DRUN_FLOAT32, next, {}},
                              {OpKind::kRecv, received.get(), 200000, DRUN_FLOAT32, before, {}}}));
    EXPECT_EQ(received.values(), repeated(200000, static_cast<float>(before)));
  });
}

TEST_F(Gpu, HostAndDeviceMemoryGoTogether) {
  run(2, [](Communicator& all) {
    const Device device(8, static_cast<float>(all.rank() + 1));
    std::vector<float> host(8, static_cast<float>(all.rank() + 1));
    // One rank uses memory of a GPU, the other of the host.
    float* const data = all.rank() == 0 ? device.get() : host.data();
    ASSERT_DONE(all.allreduce(data, data, 8, DRUN_FLOAT32, DRUN_SUM));
    EXPECT_EQ(all.rank() == 0 ? device.values() : host, repeated(8, 3));
    // Both kinds within one call.
    ASSERT_DONE(all.allreduce(device.get(), host.data(), 8, DRUN_FLOAT32, DRUN_SUM));
    EXPECT_EQ(host, repeated(8, all.rank() == 0 ? 5 : 5));
  });
}

TEST_F(Gpu, ManagedMemoryIsTheHosts) {
  unsigned long long pointer = 0;
  ASSERT_EQ(fake().allocate_managed(&pointer, 4 * sizeof(float), 1), 0);
  auto* const values = reinterpret_cast<float*>(pointer);
  std::fill(values, values + 4, 7.0f);
  const int before = fake().n_pinned_ever();
  run(1, [&](Communicator& all) { ASSERT_DONE(all.allreduce(values, values, 4, DRUN_FLOAT32, DRUN_SUM)); });
  EXPECT_EQ(fake().n_pinned_ever(), before);
  EXPECT_EQ(values[3], 7.0f);
}

TEST_F(Gpu, SmallAllreducesTravelTogether) {
  run(2, [](Communicator& all) {
    const auto own = static_cast<float>(all.rank() + 1);
    const Device first(3, own), second(5, 10 * own);
    std::vector<float> third(2, 100 * own);
    int streams[2];
    ASSERT_DONE(all.allreduce_all({{first.get(), first.get(), 3, DRUN_MEMORY_AUTO, &streams[0]},
                                   {second.get(), second.get(), 5, DRUN_MEMORY_AUTO, &streams[1]},
                                   {third.data(), third.data(), 2}},
                                  DRUN_FLOAT32, DRUN_SUM));
    EXPECT_EQ(first.values(), repeated(3, 3));
    EXPECT_EQ(second.values(), repeated(5, 30));
    EXPECT_EQ(third, repeated(2, 300));
  });
}

TEST_F(Gpu, ACallComesAfterTheWorkOfItsStream) {
  run(2, [](Communicator& all) {
    int stream = 0;
    const Device data(4, -1);
    const auto values = repeated(4, static_cast<float>(all.rank()));
    fake().write_later(&stream, data.get(), values.data(), 4 * sizeof(float));
    CallOptions options;
    options.stream = &stream;
    ASSERT_DONE(all.allreduce(data.get(), data.get(), 4, DRUN_FLOAT32, DRUN_SUM, options));
    EXPECT_EQ(data.values(), repeated(4, 1));
  });
}

TEST_F(Gpu, AStreamThatNeverEndsIsADeadlineThatNamesThisRank) {
  ::setenv("DRUN_FAKE_CUDA", "stuck", 1);
  run(
      2,
      [](Communicator& all) {
        const Device device(4, 1);
        std::vector<float> host(4, 1);
        float* const data = all.rank() == 0 ? device.get() : host.data();
        CallOptions options;
        options.name = "grad";
        int stream = 0;
        options.stream = &stream;
        const Status done = all.allreduce(data, data, 4, DRUN_FLOAT32, DRUN_SUM, options);
        ASSERT_FALSE(done);
        if (all.rank() == 0) {
          EXPECT_EQ(done.error().status, DRUN_ERROR_TIMEOUT);
          EXPECT_NE(done.error().text.find("'grad'"), std::string::npos) << done.error().text;
          EXPECT_NE(done.error().text.find("own GPU"), std::string::npos) << done.error().text;
        } else {
          EXPECT_EQ(done.error().rank, 0) << done.error().text;
        }
      },
      std::chrono::milliseconds(1500));
}

// The copy that waits in the stream comes later: its memory must still be there.
TEST_F(Gpu, ACallThatWaitsForItsStreamSeesAFailureOfAnotherRank) {
  static int busy_stream = 0;
  const int n_before = fake().n_pinned();
  const auto began = std::chrono::steady_clock::now();
  run(2, [](Communicator& all) {
    if (all.rank() == 0) {
      EXPECT_FALSE(all.fail({DRUN_ERROR_SYSTEM, "the disk is full", 0, "node0"}));
      return;
    }
    const Device data(2, 1);
    CallOptions options;
    options.stream = &busy_stream;
    fake().block(&busy_stream, 10'000);
    const Status done = all.allreduce(data.get(), data.get(), 2, DRUN_FLOAT32, DRUN_SUM, options);
    ASSERT_FALSE(done);
    EXPECT_EQ(done.error().rank, 0) << done.error().text;
    EXPECT_NE(done.error().text.find("allreduce #1: rank 0 on node0 reports: the disk is full"), std::string::npos)
        << done.error().text;
  });
  EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds(8));
  EXPECT_EQ(fake().n_pinned(), n_before + 1);
}

TEST_F(Gpu, WhatTheDriverRefusesFailsTheCallOnAllRanks) {
  ::setenv("DRUN_FAKE_CUDA", "no-pinned", 1);
  run(2, [](Communicator& all) {
    const Device data(4, 1);
    std::vector<float> host(4, 1);
    float* const given = all.rank() == 0 ? data.get() : host.data();
    const Status done = all.allreduce(given, given, 4, DRUN_FLOAT32, DRUN_SUM);
    ASSERT_FALSE(done);
    EXPECT_NE(done.error().text.find("CUDA_ERROR_OUT_OF_MEMORY"), std::string::npos) << done.error().text;
    EXPECT_EQ(done.error().rank == 0 || all.rank() == 0, true) << done.error().text;
  });
}

TEST_F(Gpu, PinnedMemoryIsUsedAgain) {
  run(1, [](Communicator& all) {
    const Device data(1000, 1);
    ASSERT_DONE(all.allreduce(data.get(), data.get(), 1000, DRUN_FLOAT32, DRUN_SUM));
    const int after_one = fake().n_pinned();
    for (int i = 0; i < 20; ++i) ASSERT_DONE(all.allreduce(data.get(), data.get(), 1000, DRUN_FLOAT32, DRUN_SUM));
    EXPECT_EQ(fake().n_pinned(), after_one);
    // Memory beyond the cached maximum is freed after the call.
    const std::size_t n = (gpu::PinnedMemory::kMaxKept + 4096) / sizeof(float);
    const Device large(n, 1);
    ASSERT_DONE(all.allreduce(large.get(), large.get(), n, DRUN_FLOAT32, DRUN_SUM));
    EXPECT_LE(fake().n_pinned(), after_one);
  });
}

}  // namespace
}  // namespace drun::runtime
