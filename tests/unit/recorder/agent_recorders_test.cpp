#include "agent/recorders.h"

#include <gtest/gtest.h>

#include <sys/stat.h>

#include "tests/unit/recorder/recorder_memory.h"

namespace drun::agent {
namespace {

using recorder::operation;
using runtime::OpKind;

void calls(runtime::Recorder& writer, std::uint64_t first, std::uint64_t last) {
  for (std::uint64_t seq = first; seq <= last; ++seq) {
    writer.end(writer.begin(operation(OpKind::kBarrier, seq), 0, 0), 0);
  }
}

std::vector<std::uint64_t> seqs(const control::Timeline& news) {
  std::vector<std::uint64_t> out;
  for (const auto& call : news.calls) out.push_back(call.seq);
  return out;
}

TEST(AgentRecorders, AWorkerCanNotCutTheMemoryUnderTheAgent) {
  Recorders recorders;
  const Fd memory = recorders.make();
  ASSERT_TRUE(memory);
  struct stat about {};
  ASSERT_EQ(::fstat(memory.get(), &about), 0);
  EXPECT_EQ(about.st_size, static_cast<off_t>(recorder::bytes_for(recorder::kEntries)));
  EXPECT_NE(::ftruncate(memory.get(), 0), 0);
  EXPECT_NE(::ftruncate(memory.get(), 1 << 20), 0);
}

TEST(AgentRecorders, AWorkerSaysItselfWhoseItIs) {
  Recorders recorders;
  const Fd first = recorders.make(), second = recorders.make();
  EXPECT_FALSE(recorders.activity_of(0));
  const auto five = runtime::Recorder::open(second, 5);
  const auto two = runtime::Recorder::open(first, 2);
  calls(*five, 1, 3);
  two->begin(operation(OpKind::kAllreduce, 9, "a"), 0, 0);
  const auto of_two = recorders.activity_of(2), of_five = recorders.activity_of(5);
  ASSERT_TRUE(of_two && of_five);
  EXPECT_EQ(of_two->open.at(0).name, "a");
  EXPECT_TRUE(of_two->last.empty());
  EXPECT_EQ(of_two->world_seq, 9u);
  EXPECT_EQ(of_five->n_begun, 3u);
  EXPECT_EQ(of_five->last.at(0).seq, 3u);
  EXPECT_TRUE(of_five->open.empty());
  EXPECT_FALSE(recorders.activity_of(3));
}

TEST(AgentRecorders, ItCanBeReadWhenTheWriterIsGone) {
  Recorders recorders;
  {
    const Fd memory = recorders.make();
    runtime::Recorder::open(memory, 1)->begin(operation(OpKind::kAllreduce, 4), 0, 0);
  }
  EXPECT_EQ(recorders.activity_of(1)->open.at(0).seq, 4u);
}

TEST(AgentRecorders, NewsAreWhatHasEndedSinceInOrder) {
  Recorders recorders;
  const Fd memory = recorders.make();
  const auto writer = runtime::Recorder::open(memory, 0);
  calls(*writer, 1, 5);
  EXPECT_EQ(seqs(recorders.new_calls_of(0, 3, false)), (std::vector<std::uint64_t>{1, 2, 3}));
  const auto open = writer->begin(operation(OpKind::kBarrier, 6), 0, 0);
  EXPECT_EQ(seqs(recorders.new_calls_of(0, 100, false)), (std::vector<std::uint64_t>{4, 5}));
  EXPECT_TRUE(recorders.new_calls_of(0, 100, false).calls.empty());
  writer->end(open, 0);
  writer->begin(operation(OpKind::kBarrier, 7), 0, 0);
  const auto at_the_end = recorders.new_calls_of(0, 100, true);
  EXPECT_EQ(seqs(at_the_end), (std::vector<std::uint64_t>{6, 7}));
  EXPECT_EQ(at_the_end.calls[1].ended_ns, 0u);
  EXPECT_EQ(at_the_end.n_lost, 0u);
}

TEST(AgentRecorders, WhatWasOverwrittenIsCounted) {
  Recorders recorders;
  recorders.set_entries(16);
  const Fd memory = recorders.make();
  const auto writer = runtime::Recorder::open(memory, 0);
  calls(*writer, 1, 3);
  EXPECT_EQ(recorders.new_calls_of(0, 100, false).calls.size(), 3u);
  calls(*writer, 4, 100);
  const auto news = recorders.new_calls_of(0, 100, false);
  EXPECT_EQ(news.n_lost, 81u);
  EXPECT_EQ(seqs(news).front(), 85u);
  EXPECT_EQ(seqs(news).back(), 100u);
}

TEST(AgentRecorders, ASecondDrunInitOfARankFollowsTheFirst) {
  Recorders recorders;
  const Fd first = recorders.make();
  calls(*runtime::Recorder::open(first, 0), 1, 3);
  EXPECT_EQ(recorders.activity_of(0)->n_begun, 3u);
  const Fd second = recorders.make();
  const auto writer = runtime::Recorder::open(second, 0);
  calls(*writer, 1, 2);
  EXPECT_EQ(recorders.activity_of(0)->n_begun, 2u);
  EXPECT_EQ(seqs(recorders.new_calls_of(0, 100, false)), (std::vector<std::uint64_t>{1, 2, 3, 1, 2}));
}

TEST(AgentRecorders, ManyDrunInitsDoNotAddUp) {
  Recorders recorders;
  for (std::uint64_t i = 1; i <= 100; ++i) {
    const Fd memory = recorders.make();
    calls(*runtime::Recorder::open(memory, 0), i, i);
    EXPECT_EQ(recorders.activity_of(0)->last.at(0).seq, i);
  }
  EXPECT_EQ(seqs(recorders.new_calls_of(0, 100, true)), (std::vector<std::uint64_t>{93, 94, 95, 96, 97, 98, 99, 100}));
}

TEST(AgentRecorders, ACounterThatLiesEndsNothing) {
  Recorders recorders;
  recorders.set_entries(16);
  const Fd memory = recorders.make();
  const auto writer = runtime::Recorder::open(memory, 0);
  calls(*writer, 1, 3);
  void* place = ::mmap(nullptr, sizeof(recorder::Header), PROT_READ | PROT_WRITE, MAP_SHARED, memory.get(), 0);
  auto* header = static_cast<recorder::Header*>(place);
  for (const std::uint64_t lie : {UINT64_MAX, std::uint64_t{0}, std::uint64_t{1} << 40}) {
    header->n_begun = lie;
    EXPECT_TRUE(recorders.activity_of(0));
    EXPECT_LE(recorders.new_calls_of(0, 100, true).calls.size(), 16u);
  }
  for (const int rank : {-7, INT32_MAX}) {
    const Fd other = recorders.make();
    (void)runtime::Recorder::open(other, rank);
    EXPECT_TRUE(recorders.activity_of(0));
  }
  ::munmap(place, sizeof(recorder::Header));
}

}  // namespace
}  // namespace drun::agent
