// Tensors in GPU memory give, bit by bit, the results of the same tensors in host memory. Fakes of the driver and of
// NCCL replace NVIDIA's.
#include <cstdlib>
#include <cstring>
#include <memory>
#include <numeric>

#include "runtime/src/gpu/driver.h"
#include "runtime/src/gpu/kernel_image.h"
#include "tests/contains.h"
#include "tests/unit/runtime/fake_gpu.h"
#include "tests/unit/training/ranks.h"

namespace drun::training_test {
namespace {

using runtime::testing::Array;
using runtime::testing::fake;
namespace gpu = runtime::gpu;

const std::vector<std::size_t> kCounts{7, 0, 9000, 1, 33};

// Parameter: true to use NCCL, false to go through the host.
class GpuTraining : public ::testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    fake();
    ::setenv("DRUN_NCCL_LIB", FAKE_NCCL, 1);
  }
  void TearDown() override { ::unsetenv("DRUN_NCCL_LIB"); }
  static void run(int size, const std::function<void(Transport&)>& body) {
    const int n_pinned = fake().n_pinned_ever();
    run_ranks(size, body, GetParam());
    if (size > 1) {
      EXPECT_EQ(fake().n_pinned_ever() == n_pinned, GetParam()) << "NCCL carries it, or pinned memory of the host";
    }
  }
  const runtime::testing::KernelsForTests kernels_;
};

// The same tensors in host and in device memory.
template <typename T>
struct Twins {
  Twins() {
    for (const auto count : kCounts) {
      host.emplace_back(count);
      device.emplace_back(count);
    }
  }
  void set(std::size_t i, const std::vector<T>& values) {
    std::copy(values.begin(), values.end(), host[i].begin());
    device[i].set(values);
  }
  void expect_same(void* stream, const std::string& of) const {
    for (std::size_t i = 0; i < host.size(); ++i) {
      EXPECT_TRUE(bytes_of(device[i].values(stream)) == bytes_of(host[i])) << of << ", tensor " << i;
    }
  }
  std::vector<std::vector<T>> host;
  std::vector<Array<T>> device;
};

std::string name(std::size_t i) { return "t" + std::to_string(i); }

template <typename T>
void expect_same_buckets(Transport& ranks, std::size_t bucket_bytes, Compression compression, drun_op op) {
  Twins<T> twins;
  Bucketer on_host(ranks, bucket_bytes), on_device(ranks, bucket_bytes);
  for (std::size_t i = 0; i < kCounts.size(); ++i) {
    on_host.add(name(i), twins.host[i].data(), kCounts[i]);
    on_device.add(name(i), twins.device[i].get(), kCounts[i]);
  }
  for (int step = 0; step < 2; ++step) {
    for (std::size_t i = 0; i < kCounts.size(); ++i) {
      auto values = exact_gradients<T>(kCounts[i], ranks.rank(), step);
      if (i == 4) values[3] = 1e6;  // too large for an f16 unless there are many ranks
      twins.set(i, values);
    }
    on_host.allreduce(op, compression);
    on_device.allreduce(op, compression);
    twins.expect_same(ranks.stream(), "buckets of " + std::to_string(bucket_bytes));
  }
  EXPECT_EQ(on_device.n_cut(), on_host.n_cut());
  EXPECT_EQ(on_host.n_cut() > 0, compression == Compression::fp16);
}

TEST_P(GpuTraining, BucketsAreThoseOfTheHost) {
  for (const int size : {1, 2, 4}) {  // sizes for which the division is exact
    run(size, [](Transport& ranks) {
      for (const std::size_t bucket_bytes : {kBucketBytes, std::size_t{8000}}) {
        expect_same_buckets<float>(ranks, bucket_bytes, Compression::none, DRUN_AVG);
        expect_same_buckets<double>(ranks, bucket_bytes, Compression::fp16, DRUN_SUM);
        expect_same_buckets<float>(ranks, bucket_bytes, Compression::bf16, DRUN_AVG);
      }
    });
  }
}

// The transport is told once of memory that is large enough, and again of larger memory.
TEST_P(GpuTraining, LargeBucketsAreKnownToTheTransport) {
  class Listening final : public Forwarding {
   public:
    using Forwarding::Forwarding;
    void will_use(void* memory, std::size_t n_bytes) override {
      EXPECT_EQ(drun_memory_kind(memory), DRUN_MEMORY_DEVICE);
      told.push_back(n_bytes);
    }
    void allreduce(void* data, std::size_t count, drun_dtype dtype, drun_op op, const std::string& of) override {
      EXPECT_EQ(told.size(), of.find("large") != std::string::npos ? 1u : 0u) << "before the first use";
      Forwarding::allreduce(data, count, dtype, op, of);
    }
    std::vector<std::size_t> told;
  };
  run(2, [](Transport& ranks) {
    constexpr std::size_t kCount = std::size_t{1} << 19;  // f32: two of them are 4 MiB
    const Array<float> first(kCount), second(kCount), third(10), fourth(10);
    Listening transport(ranks);
    Bucketer small(transport), large(transport);
    small.add("third", third.get(), 10);
    small.add("fourth", fourth.get(), 10);
    large.add("large 1", first.get(), kCount);
    large.add("large 2", second.get(), kCount);
    small.allreduce(DRUN_SUM);
    EXPECT_TRUE(transport.told.empty());
    for (int step = 0; step < 2; ++step) large.allreduce(DRUN_SUM);
    large.allreduce(DRUN_SUM, Compression::fp16);
    EXPECT_EQ(transport.told, std::vector<std::size_t>{8 * kCount});
  });
}

template <typename T>
void expect_same_sparse(Transport& ranks, const Selection& selection, bool wide, drun_op op) {
  Twins<T> twins;
  SparseAllreduce on_host(selection, ranks, 20'000), on_device(selection, ranks, 20'000);
  for (std::size_t i = 0; i < kCounts.size(); ++i) {
    on_host.add(name(i), twins.host[i].data(), kCounts[i]);
    on_device.add(name(i), twins.device[i].get(), kCounts[i]);
  }
  if (wide) on_host.set_most_short(10), on_device.set_most_short(10);
  for (int step = 0; step < 3; ++step) {
    for (std::size_t i = 0; i < kCounts.size(); ++i) twins.set(i, gradients<T>(kCounts[i], ranks.rank(), step));
    on_host.allreduce(op);
    on_device.allreduce(op);
    twins.expect_same(ranks.stream(), training::in_words(selection));
    for (std::size_t i = 0; i < kCounts.size(); ++i) {
      if (kCounts[i] == 0) continue;
      const void* const kept = fake().inside(const_cast<void*>(on_device.gpu_residual(i)));
      EXPECT_TRUE(std::memcmp(kept, on_host.residual<T>(i).data(), kCounts[i] * sizeof(T)) == 0)
          << training::in_words(selection) << " " << i;
    }
  }
}

TEST_P(GpuTraining, SparseSumsAreThoseOfTheHost) {
  for (const int size : {1, 3}) {
    run(size, [](Transport& ranks) {
      expect_same_sparse<float>(ranks, TopK{0.01}, false, DRUN_AVG);
      expect_same_sparse<double>(ranks, TopK{1}, true, DRUN_SUM);
      expect_same_sparse<double>(ranks, Threshold{0.01}, false, DRUN_AVG);
      expect_same_sparse<float>(ranks, Threshold{1e300}, true, DRUN_SUM);  // nothing is sent
    });
  }
}

// Plain gradient descent in both memories, with every method.
TEST_P(GpuTraining, OptimizersTrainAsOnTheHost) {
  constexpr std::size_t kCount = 5000;
  constexpr double kRate = 0.5;
  run(2, [&](Transport& ranks) {
    for (const char* method : {"none", "fp16", "bf16", "topk=0.01", "threshold=0.02", "partial=3"}) {
      std::vector<double> host_parameters(kCount, 1), host_gradients(kCount);
      const Array<double> parameters(host_parameters), gradients_there(kCount);
      void* const stream = ranks.stream();
      DistributedOptimizer on_host(
          [&] {
            for (std::size_t i = 0; i < kCount; ++i) host_parameters[i] -= kRate * host_gradients[i];
          },
          parse_method(method), ranks, 10'000);
      DistributedOptimizer on_device(
          [&] {
            check(drun_gpu_scale(gradients_there.get(), kCount, DRUN_FLOAT64, -kRate, stream));
            check(drun_gpu_add(parameters.get(), gradients_there.get(), kCount, DRUN_FLOAT64, stream));
          },
          parse_method(method), ranks, 10'000);
      on_host.add("w", host_parameters.data(), host_gradients.data(), kCount);
      on_device.add("w", parameters.get(), gradients_there.get(), kCount);
      for (int step = 0; step < 4; ++step) {
        const auto given = exact_gradients<double>(kCount, ranks.rank(), step);
        std::copy(given.begin(), given.end(), host_gradients.begin());
        (void)gradients_there.values(stream);  // the previous step's work is done
        gradients_there.set(given);
        on_host.step();
        on_device.step();
      }
      on_host.synchronise();
      on_device.synchronise();
      EXPECT_TRUE(bytes_of(parameters.values(stream)) == bytes_of(host_parameters)) << method;
      expect_same_on_all(ranks, host_parameters);
    }
  });
}

TEST_P(GpuTraining, TensorsOfTwoGpusAreRefused) {
  run(1, [](Transport& ranks) {
    const Array<float> first(3), second(3);
    fake().put_on(second.get(), 1);
    SparseAllreduce sparse(TopK{1}, ranks);
    sparse.add("first", first.get(), 3);
    try {
      sparse.add("second", second.get(), 3);
      ADD_FAILURE() << "no exception";
    } catch (const Error& e) {
      EXPECT_STREQ(e.what(), "tensor 'second': it is on GPU 1, and others are on GPU 0");
    }
  });
}

TEST_P(GpuTraining, TensorsOfBothKindsAreRefused) {
  run(1, [](Transport& ranks) {
    float on_host[3] = {};
    const Array<float> on_device(3);
    Bucketer buckets(ranks);
    buckets.add("first", on_host, 3);
    try {
      buckets.add("second", on_device.get(), 3);
      ADD_FAILURE() << "no exception";
    } catch (const Error& e) {
      EXPECT_EQ(e.code, DRUN_ERROR_ARGUMENT);
      EXPECT_STREQ(e.what(), "tensor 'second': some tensors are in memory of a GPU, and some in that of the host");
    }
  });
}

// Receives indices that are beyond the tensor.
class WildRank final : public Forwarding {
 public:
  using Forwarding::Forwarding;
  void allgatherv(const void* send, std::size_t send_count, void* recv, const std::size_t* recv_counts,
                  drun_dtype dtype, const std::string& tensor) override {
    Forwarding::allgatherv(send, send_count, recv, recv_counts, dtype, tensor);
    if (dtype != DRUN_UINT32) return;
    EXPECT_EQ(fake().wait(stream()), 1);
    const std::uint32_t wild = 1u << 31;
    std::memcpy(fake().inside(recv), &wild, sizeof wild);
  }
};

TEST_P(GpuTraining, AnIndexThatNobodyHasDoesNoHarmAndIsSaidInTheNextStep) {
  run(2, [](Transport& ranks) {
    WildRank wild(ranks);
    const Array<float> data(std::vector<float>{1, 2, 3, 4});
    SparseAllreduce sparse(TopK{0.25}, wild);
    sparse.add("w", data.get(), 4);
    sparse.allreduce(DRUN_SUM);
    EXPECT_EQ(data.values(ranks.stream()), (std::vector<float>{0, 0, 0, 4}));  // only the other rank's
    try {
      sparse.allreduce(DRUN_SUM);
      ADD_FAILURE() << "no exception";
    } catch (const Error& e) {
      EXPECT_EQ(e.code, DRUN_ERROR_PEER);
      EXPECT_TRUE(testing::contains(e.what(), "a rank sent the index of an element that its tensor does not have"));
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Ways, GpuTraining, ::testing::Bool(),
                         [](const auto& one) { return std::string(one.param ? "Nccl" : "Host"); });

}  // namespace
}  // namespace drun::training_test
