#include "runtime/src/call_options.h"

#include <cstddef>

#include "tests/unit/runtime/grid.h"

namespace drun::runtime {
namespace {

Outcome<CallOptions> read(const drun_call_options* given) {
  CallOptions result;
  if (auto ok = read_call_options("drun_x", given, result); !ok) return tl::unexpected<Failure>(ok.error());
  return result;
}

using namespace testing;
using namespace std::chrono_literals;

TEST(CallOptions, OfNullAreTheDefaults) {
  const auto options = read(nullptr);
  ASSERT_TRUE(options);
  EXPECT_TRUE(options->name.empty());
  EXPECT_EQ(options->timeout, 0ms);
  EXPECT_EQ(options->prescale, 1);
  EXPECT_EQ(options->postscale, 1);
}

TEST(CallOptions, OfAnOlderHeaderLackItsLastFields) {
  drun_call_options given{offsetof(drun_call_options, prescale), "n", 5, 7, 7, nullptr, DRUN_MEMORY_HOST, nullptr};
  const auto options = read(&given);
  ASSERT_TRUE(options);
  EXPECT_EQ(options->name, "n");
  EXPECT_EQ(options->timeout, 5ms);
  EXPECT_EQ(options->prescale, 1);
  EXPECT_EQ(options->memory, DRUN_MEMORY_AUTO);
}

TEST(CallOptions, KeepWholeCharactersOfAName) {
  const auto shown = [](const std::string& name) {
    drun_call_options given = DRUN_CALL_OPTIONS;
    given.name = name.c_str();
    return read(&given)->name;
  };
  EXPECT_EQ(shown(std::string(63, 'a')), std::string(63, 'a'));
  EXPECT_EQ(shown(std::string(64, 'a')), std::string(63, 'a'));
  EXPECT_EQ(shown(std::string(62, 'a') + "\u00e4"), std::string(62, 'a'));
  EXPECT_EQ(shown("a\nb\x1b[31m"), "a b?[31m");
  EXPECT_EQ(shown("a\xc2\x9b"
                  "2J\xff\u00e4"),
            "a?2J?\u00e4");
}

TEST(CallOptions, ThatMakeNoSenseAreNamed) {
  const auto text = [](drun_call_options given) {
    const auto options = read(&given);
    EXPECT_FALSE(options);
    return options ? "" : options.error().text;
  };
  const auto size = sizeof(drun_call_options);
  EXPECT_EQ(text({0, nullptr, 0, 1, 1, nullptr, DRUN_MEMORY_AUTO, nullptr}), "drun_x: options.struct_size is not set");
  EXPECT_EQ(text({size, nullptr, -1, 1, 1, nullptr, DRUN_MEMORY_AUTO, nullptr}),
            "drun_x: options.timeout_ms is negative");
  EXPECT_EQ(text({size, nullptr, 0, std::nan(""), 1, nullptr, DRUN_MEMORY_AUTO, nullptr}),
            "drun_x: options.prescale is not a finite number");
  EXPECT_EQ(text({size, nullptr, 0, 1, HUGE_VAL, nullptr, DRUN_MEMORY_AUTO, nullptr}),
            "drun_x: options.postscale is not a finite number");
  EXPECT_EQ(text({size, nullptr, 0, 1, 1, nullptr, static_cast<drun_memory>(3), nullptr}),
            "drun_x: options.memory is no kind of memory");
}

TEST(Scales, MultiplyWhatIsGivenAndTheResult) {
  FakeJob job(3);
  job.run([&](int rank) {
    auto all = join(job, rank);
    ASSERT_TRUE(all);
    CallOptions options;
    options.prescale = rank == 0 ? 0.5 : 2;  // may differ between ranks
    options.postscale = 10;
    for (const auto dtype : {DRUN_FLOAT16, DRUN_BFLOAT16, DRUN_FLOAT32, DRUN_FLOAT64}) {
      for (const auto op : {DRUN_SUM, DRUN_MAX}) {
        Elements data(dtype, 1), expected(dtype, 1);
        data.set(0, 4);
        expected.set(0, op == DRUN_SUM ? 180 : 80);
        std::string bytes = data.bytes(), result = bytes;
        ASSERT_TRUE(all->allreduce(bytes.data(), result.data(), 1, dtype, op, options));
        EXPECT_EQ(result, expected.bytes()) << name_of(dtype) << " " << name_of(op);
        EXPECT_EQ(bytes, data.bytes());
        ASSERT_TRUE(all->allreduce(bytes.data(), bytes.data(), 1, dtype, op, options));
        EXPECT_EQ(bytes, expected.bytes());
      }
    }
    // Intermediate values may be too large or too small for a half.
    options.prescale = 0x1p-20;
    options.postscale = 0x1p20;
    std::uint16_t one = 0x3c00;
    ASSERT_TRUE(all->allreduce(&one, &one, 1, DRUN_FLOAT16, DRUN_SUM, options));
    EXPECT_EQ(one, 0x4200);  // 3
  });
}

TEST(Scales, WorkAlone) {
  FakeJob job(1);
  auto all = join(job, 0);
  ASSERT_TRUE(all);
  CallOptions options;
  options.prescale = 3;
  options.postscale = 5;
  float value = 2, result = 0;
  ASSERT_TRUE(all->allreduce(&value, &result, 1, DRUN_FLOAT32, DRUN_AVG, options));
  EXPECT_EQ(result, 30);
}

TEST(Scales, AreRefusedWhereTheyMeanNothing) {
  FakeJob job(1);
  auto all = join(job, 0);
  ASSERT_TRUE(all);
  CallOptions options;
  options.postscale = 2;
  std::int32_t value = 1;
  EXPECT_EQ(all->allreduce(&value, &value, 1, DRUN_INT32, DRUN_SUM, options).error().text,
            "drun_allreduce: prescale and postscale are for floating types, not for i32");
  EXPECT_EQ(all->broadcast(&value, 1, DRUN_INT32, 0, options).error().text,
            "drun_broadcast: prescale and postscale are for operations that reduce");
  EXPECT_EQ(all->allgather(&value, &value, 1, DRUN_INT32, options).error().status, DRUN_ERROR_ARGUMENT);
  EXPECT_EQ(all->barrier(options).error().status, DRUN_ERROR_ARGUMENT);
}

TEST(NameAndTimeout, OfACallAreInItsError) {
  FakeJob job(2, 60s);
  Events failed;
  job.run([&](int rank) {
    auto all = join(job, rank);
    ASSERT_TRUE(all);
    if (rank == 1) return failed.wait_for(1);
    CallOptions options;
    options.name = "grad.17";
    options.timeout = 300ms;
    double value = 1;
    const auto done = all->allreduce(&value, &value, 1, DRUN_FLOAT64, DRUN_SUM, options);
    failed.add();
    ASSERT_FALSE(done);
    EXPECT_EQ(done.error().status, DRUN_ERROR_TIMEOUT);
    EXPECT_EQ(done.error().text, "allreduce #1 'grad.17' timed out after 300 ms waiting for rank 1 on node1");
  });
}

TEST(Timeout, NeedsNotAgree) {
  FakeJob job(2);
  job.run([&](int rank) {
    auto all = join(job, rank);
    ASSERT_TRUE(all);
    CallOptions options;
    options.give_name("tensor");
    options.timeout = std::chrono::seconds(40 + rank);
    double value = 1;
    ASSERT_TRUE(all->allreduce(&value, &value, 1, DRUN_FLOAT64, DRUN_SUM, options));
    EXPECT_EQ(value, 2);
    const auto done = all->allreduce(&value, &value, static_cast<std::size_t>(rank), DRUN_FLOAT64, DRUN_SUM, options);
    ASSERT_FALSE(done);
    EXPECT_EQ(done.error().status, DRUN_ERROR_MISMATCH);
    EXPECT_NE(done.error().text.find("called allreduce #2 'tensor' of 0 f64"), std::string::npos) << done.error().text;
    EXPECT_NE(done.error().text.find("called allreduce #2 'tensor' of 1 f64"), std::string::npos) << done.error().text;
  });
}

TEST(Name, IsShownAsFarAsItGoesAndComparedInFull) {
  CallOptions a, b;
  a.give_name(std::string(70, 'x') + "a\n");
  b.give_name(std::string(70, 'x') + "b\n");
  EXPECT_EQ(a.name, std::string(63, 'x'));
  EXPECT_EQ(a.name, b.name);
  EXPECT_NE(a.names, b.names);
  EXPECT_NE(a.names, 0u);
}

// Ranks that share memory, ranks on different hosts, and both.
class Names : public ::testing::TestWithParam<std::vector<int>> {
 protected:
  // Returns the status of the calls in `body` on each rank.
  std::vector<Status> outcomes(const std::function<Status(Communicator&, int rank)>& body) {
    const int size = static_cast<int>(GetParam().size());
    FakeJob job(size);
    job.place_on_hosts(GetParam());
    std::vector<Status> result(static_cast<std::size_t>(size));
    job.run([&](int rank) {
      auto all = join(job, rank);
      ASSERT_TRUE(all);
      auto& done = result[static_cast<std::size_t>(rank)];
      done = body(*all, rank);
      for (int i = 0; i < 2 && done; ++i) done = all->barrier();
    });
    return result;
  }
  static CallOptions named(const std::string& name) {
    CallOptions options;
    if (!name.empty()) options.give_name(name);
    return options;
  }
};
INSTANTIATE_TEST_SUITE_P(Over, Names,
                         ::testing::Values(std::vector{0, 1}, std::vector{0, 0, 0}, std::vector{0, 0, 1, 1}));

// The calls differ only in their names: without them the sums would be mixed.
TEST_P(Names, ThatDifferAreAnErrorThatNamesBothCalls) {
  const auto done = outcomes([](Communicator& all, int rank) {
    double value = rank;
    return all.allreduce(&value, &value, 1, DRUN_FLOAT64, DRUN_SUM, named(rank == 0 ? "loss" : "accuracy"));
  });
  for (const auto& one : done) {
    ASSERT_FALSE(one);
    EXPECT_EQ(one.error().status, DRUN_ERROR_MISMATCH) << one.error().text;
    EXPECT_NE(one.error().text.find("allreduce #1 'loss' of 1 f64 (sum)"), std::string::npos) << one.error().text;
    EXPECT_NE(one.error().text.find("allreduce #1 'accuracy' of 1 f64 (sum)"), std::string::npos) << one.error().text;
  }
}

TEST_P(Names, ThatOnlySomeGiveAreNotCompared) {
  const auto done = outcomes([](Communicator& all, int rank) -> Status {
    double value = 1;
    for (int i = 0; i < 100; ++i) {
      auto sum = all.allreduce(&value, &value, 1, DRUN_FLOAT64, DRUN_MAX, named((rank + i) % 2 == 0 ? "x" : ""));
      if (!sum) return sum;
      auto sent = all.broadcast(&value, 1, DRUN_FLOAT64, 0, named(rank == 0 ? "from" : ""));
      if (!sent) return sent;
    }
    return {};
  });
  for (const auto& one : done) EXPECT_TRUE(one) << one.error().text;
}

// A sender and its receiver use different names.
TEST_P(Names, OfASendAndItsReceiveNeedNotAgree) {
  const auto done = outcomes([](Communicator& all, int rank) -> Status {
    int value = rank;
    if (rank == 0) return all.send(&value, 1, DRUN_INT32, 1, named("activations"));
    if (rank == 1) return all.recv(&value, 1, DRUN_INT32, 0, named("input"));
    return {};
  });
  for (const auto& one : done) EXPECT_TRUE(one) << one.error().text;
}

}  // namespace
}  // namespace drun::runtime
