#include "recorder/reader.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <random>
#include <thread>

#include "base/clock.h"
#include "tests/unit/recorder/recorder_memory.h"

namespace drun::recorder {
namespace {

using runtime::OpKind;

TEST(Recorder, NothingIsOpenedThatIsNoRecorder) {
  EXPECT_EQ(runtime::Recorder::open(Fd(), 0), nullptr);
  RecorderMemory memory(8);
  const auto refused = [&] { return runtime::Recorder::open(memory.fd(), 0) == nullptr; };
  memory.header()->magic = 1;
  EXPECT_TRUE(refused());
  memory.header()->magic = kMagic;
  memory.header()->n_entries = 9;  // more than fit
  EXPECT_TRUE(refused());
  memory.header()->n_entries = 0;
  EXPECT_TRUE(refused());
  memory.header()->n_entries = 8;
  memory.header()->entry_bytes = 256;  // a later layout
  EXPECT_TRUE(refused());
  EXPECT_EQ(memory.reader->rank(), -1);
  const Fd small(::memfd_create("small", MFD_CLOEXEC));
  EXPECT_EQ(runtime::Recorder::open(small, 0), nullptr);
}

TEST(Recorder, CallIsOpenUntilItHasEnded) {
  RecorderMemory memory(8);
  const auto writer = memory.writer(3);
  ASSERT_NE(writer, nullptr);
  EXPECT_EQ(memory.reader->rank(), 3);
  EXPECT_EQ(memory.header()->pid, ::getpid());
  EXPECT_FALSE(memory.reader->standing().open);

  const std::int64_t before = monotonic_ns();
  const auto number =
      writer->begin(operation(OpKind::kAllreduce, 1284, "grad.17"), 0, 0, std::chrono::microseconds(250));
  auto standing = memory.reader->standing();
  ASSERT_TRUE(standing.open);
  EXPECT_FALSE(standing.last);
  EXPECT_EQ(standing.open->seq, 1284u);
  EXPECT_EQ(standing.open->count, 1284u * 3);
  EXPECT_EQ(standing.open->kind, static_cast<int>(OpKind::kAllreduce));
  EXPECT_EQ(standing.open->dtype, DRUN_FLOAT32);
  EXPECT_EQ(standing.open->queued_us, 250u);
  EXPECT_EQ(name_of(*standing.open), "grad.17");
  EXPECT_GE(standing.open->started_ns, before);
  EXPECT_EQ(standing.world_seq, 1284u);

  writer->end(number, DRUN_ERROR_PEER);
  standing = memory.reader->standing();
  EXPECT_FALSE(standing.open);
  ASSERT_TRUE(standing.last);
  EXPECT_EQ(standing.last->status, DRUN_ERROR_PEER);
  EXPECT_GE(standing.last->ended_ns, standing.last->started_ns);
  EXPECT_EQ(name_of(*standing.last), "grad.17");
}

TEST(Recorder, CallsOfSomeRanksDoNotCountAsThoseOfAll) {
  RecorderMemory memory(8);
  const auto writer = memory.writer();
  writer->begin(operation(OpKind::kBarrier, 7), 0, 0);
  auto of_some = operation(OpKind::kBarrier, 20);
  of_some.comm = 2;
  writer->begin(of_some, 5, 0);
  EXPECT_EQ(memory.reader->call(2)->comm, 2u);
  EXPECT_EQ(memory.reader->call(2)->group, 5u);
  writer->begin(operation(OpKind::kSend, 30), 0, 0);
  EXPECT_EQ(memory.reader->standing().world_seq, 7u);
}

TEST(Recorder, TheOldestOpenCallIsShownAndTheLatestThatEnded) {
  RecorderMemory memory(8);
  const auto writer = memory.writer();
  const auto first = writer->begin(operation(OpKind::kSend, 1), 0, 0);
  const auto second = writer->begin(operation(OpKind::kSend, 2), 0, 0);
  writer->begin(operation(OpKind::kSend, 3), 0, 0);
  writer->end(second, 0);
  EXPECT_EQ(memory.reader->standing().open->seq, 1u);
  EXPECT_EQ(memory.reader->standing().last->seq, 2u);
  writer->end(first, 0);
  EXPECT_EQ(memory.reader->standing().open->seq, 3u);
}

TEST(Recorder, RingKeepsTheLatestCalls) {
  RecorderMemory memory(8);
  const auto writer = memory.writer();
  const auto kept_open = writer->begin(operation(OpKind::kBarrier, 1), 0, 0);
  for (std::uint64_t seq = 2; seq <= 30; ++seq) writer->end(writer->begin(operation(OpKind::kBarrier, seq), 0, 0), 0);
  EXPECT_EQ(memory.reader->n_begun(), 30u);
  for (std::uint64_t number = 1; number <= 40; ++number) {
    const auto call = memory.reader->call(number);
    EXPECT_EQ(call.has_value(), number > 22 && number <= 30) << number;
    if (call) {
      EXPECT_EQ(call->seq, number);
    }
  }
  writer->end(kept_open, 0);  // its entry holds another call by now
  EXPECT_EQ(memory.reader->call(25)->seq, 25u);
}

// Tests memory for 8 entries and for 6.
TEST(Recorder, ACallWithoutANameHasNotThatOfAnEarlierOne) {
  for (const std::uint32_t n_entries : {8u, 6u}) {
    RecorderMemory memory(n_entries);
    const auto writer = memory.writer();
    for (std::uint64_t seq = 1; seq <= n_entries; ++seq) {
      writer->end(writer->begin(operation(OpKind::kBarrier, seq, "a long name of many words"), 0, 0), DRUN_ERROR_PEER);
    }
    writer->end(writer->begin(operation(OpKind::kBarrier, n_entries + 1), 0, 0), 0);
    const auto call = memory.reader->call(n_entries + 1);
    ASSERT_TRUE(call);
    EXPECT_EQ(name_of(*call), "");
    EXPECT_EQ(call->status, 0);
    EXPECT_EQ(name_of(*memory.reader->call(n_entries)), "a long name of many words");
  }
}

TEST(Recorder, WordsAreTheCalls) {
  RecorderMemory memory(8);
  const auto writer = memory.writer();
  auto given = operation(OpKind::kReduce, 77);
  given.comm = 0xfedcba98;
  given.count = UINT64_MAX;
  given.op = DRUN_MAX;
  const auto number = writer->begin(given, -2, -3, std::chrono::hours(1000));
  writer->end(number, -5, 99);
  const auto call = memory.reader->call(number);
  ASSERT_TRUE(call);
  EXPECT_EQ(call->comm, 0xfedcba98);
  EXPECT_EQ(call->group, static_cast<std::uint32_t>(-2));
  EXPECT_EQ(call->root, -3);
  EXPECT_EQ(call->count, UINT64_MAX);
  EXPECT_EQ(call->queued_us, UINT32_MAX);
  EXPECT_EQ(call->op, DRUN_MAX);
  EXPECT_EQ(call->status, -5);
  EXPECT_EQ(call->reserved, 0u);
  EXPECT_EQ(call->ended_ns, 99);
}

TEST(Recorder, NamesAreCutAndPrintable) {
  RecorderMemory memory(8);
  const auto writer = memory.writer();
  writer->begin(operation(OpKind::kBarrier, 1, std::string(200, 'x')), 0, 0);
  EXPECT_EQ(name_of(*memory.reader->call(1)), std::string(63, 'x'));
  writer->begin(operation(OpKind::kBarrier, 2, "a\033[2Jb\n\x7f\xc3\xa4"), 0, 0);
  EXPECT_EQ(name_of(*memory.reader->call(2)), "a?[2Jb ?\xc3\xa4");
  writer->begin(operation(OpKind::kBarrier, 3, "\xc2\x9bm\xff"), 0, 0);
  EXPECT_EQ(name_of(*memory.reader->call(3)), "?m?");
}

TEST(Recorder, NoCallIsReadInHalves) {
  RecorderMemory memory(4);
  const auto writer = memory.writer();
  std::atomic<bool> over{false};
  std::thread thread([&] {
    for (std::uint64_t seq = 1; seq <= 60000; ++seq) {
      writer->end(writer->begin(operation(OpKind::kBarrier, seq, "call " + std::to_string(seq)), 0, 0), 0);
    }
    over = true;
  });
  std::size_t n_read = 0;
  while (!over) {
    const std::uint64_t newest = memory.reader->n_begun();
    for (std::uint64_t number = newest; number > 0 && number + 4 > newest; --number) {
      const auto call = memory.reader->call(number);
      if (!call) continue;
      ++n_read;
      ASSERT_EQ(call->seq, number);
      ASSERT_EQ(call->count, number * 3);
      ASSERT_EQ(name_of(*call), "call " + std::to_string(number));
      ASSERT_TRUE(call->ended_ns == 0 || call->ended_ns >= call->started_ns);
    }
    (void)memory.reader->standing();
  }
  thread.join();
  EXPECT_EQ(memory.reader->standing().last->seq, 60000u);
  EXPECT_GT(n_read, 0u);
}

TEST(Recorder, KilledInTheMiddleOfAnEntryOnlyThatOneIsLost) {
  RecorderMemory memory(8);
  const auto writer = memory.writer();
  writer->end(writer->begin(operation(OpKind::kBarrier, 1), 0, 0), 0);
  writer->begin(operation(OpKind::kBarrier, 2), 0, 0);
  auto* entries = reinterpret_cast<Entry*>(memory.bytes() + sizeof(Header));
  entries[1].sequence |= 1;
  EXPECT_FALSE(memory.reader->call(2));
  EXPECT_EQ(memory.reader->standing().last->seq, 1u);
}

TEST(Recorder, AnythingMayBeInTheMemory) {
  RecorderMemory memory(16);
  std::mt19937_64 random(1);
  for (int round = 0; round < 200; ++round) {
    for (std::size_t i = 0; i < memory.n_bytes(); i += 8) {
      const std::uint64_t word = round % 3 == 0 ? random() : random() % 40;
      std::memcpy(memory.bytes() + i, &word, 8);
    }
    const auto standing = memory.reader->standing();
    for (const auto* call : {&standing.open, &standing.last}) {
      if (*call) {
        EXPECT_LT(name_of(**call).size(), kNameBytes);
      }
    }
    for (const std::uint64_t number : {std::uint64_t{0}, std::uint64_t{1}, random(), UINT64_MAX}) {
      (void)memory.reader->call(number);
    }
  }
}

}  // namespace
}  // namespace drun::recorder
