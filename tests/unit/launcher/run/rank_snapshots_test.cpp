#include "launcher/run/rank_snapshots.h"

#include <gtest/gtest.h>

#include <signal.h>
#include "launcher/plan/rank_list.h"

namespace drun::launcher {
namespace {

constexpr const char* kEuStack =
    "PID 26760 - process\n"
    "TID 26760:\n"
    "#0  0x00007fece0ba0503 clock_nanosleep@GLIBC_2.2.5\n"
    "#1  0x000055b4032a34af\n"
    "#2  0x00007fece0af824a std::vector<int, std::allocator<int> >::push_back(int const&)\n";

constexpr const char* kGdb =
    "[Thread debugging using libthread_db enabled]\n"
    "0x00007fece0ba0503 in clock_nanosleep () from /lib/libc.so.6\n"
    "#9  not one of a thread\n"
    "\n"
    "Thread 2 (Thread 0x7fece0ace740 (LWP 26761) \"train\"):\n"
    "#0  __poll (fds=0x7ffc, nfds=1) at ../poll.c:29\n"
    "#1  0x00007fece0ba4e53 in wait_for_it (x=<optimized out>) at net.cpp:25\n"
    "\n"
    "Thread 1 (Thread 0x7fece0ace741 (LWP 26760) \"train\"):\n"
    "#0  0x000055b4032a34af in ?? ()\n"
    "[Inferior 1 (process 26760) detached]\n";

constexpr const char* kPySpy =
    "Process 123: python3 train.py\n"
    "Python v3.11.2 (/usr/bin/python3.11)\n"
    "\n"
    "Thread 123 (idle): \"MainThread\"\n"
    "    step (train.py:12)\n"
    "    <module> (train.py:30)\n";

control::ProcessState process(int pid, const std::string& stack) {
  control::ProcessState p;
  p.pid = pid;
  p.name = "train";
  p.state = 'S';
  p.cpu_ms = 1500;
  p.waits_in = "do_sys_poll";
  p.stack = stack;
  return p;
}

RankState running(int rank, const std::string& stack, bool joined = true) {
  RankState r;
  r.rank = rank;
  r.host = "node" + std::to_string(rank / 4);
  r.joined = joined;
  control::Described d;
  d.rank = static_cast<std::uint32_t>(rank);
  d.pid = 100 + rank;
  d.running = true;
  d.processes = {process(100 + rank, stack)};
  r.described = std::move(d);
  return r;
}

std::string stack_of(int tid, const std::string& function) {
  return "PID " + std::to_string(tid) + " - process\nTID " + std::to_string(tid) + ":\n#0  0x" +
         std::to_string(tid * 4096) + " " + function + "\n";
}

TEST(Ranks, AreFoldedIntoRanges) {
  EXPECT_EQ(ranks_text({}), "");
  EXPECT_EQ(ranks_text({4}), "4");
  EXPECT_EQ(ranks_text({0, 1, 2, 3, 4, 5, 6, 8}), "0-6,8");
  EXPECT_EQ(ranks_text({1, 3, 4}), "1,3-4");
}

TEST(PlainStack, OfEuStackHasNoAddressesAndNoVersions) {
  EXPECT_EQ(plain_stack(kEuStack),
            "#0 clock_nanosleep\n"
            "#1 ??\n"
            "#2 std::vector<int, std::allocator<int> >::push_back(int const&)\n");
}

TEST(PlainStack, OfGdbHasPlacesAndNoArguments) {
  EXPECT_EQ(plain_stack(kGdb),
            "1 thread\n"
            "#0 __poll at ../poll.c:29\n"
            "#1 wait_for_it at net.cpp:25\n"
            "1 thread\n"
            "#0 ??\n");
}

TEST(PlainStack, OfPySpyHasTheLinesOfTheScript) {
  EXPECT_EQ(plain_stack(kPySpy),
            "1 thread (idle): \"MainThread\"\n"
            "#0 step (train.py:12)\n"
            "#1 <module> (train.py:30)\n");
}

TEST(PlainStack, ThreadsWithTheSameFramesAreOne) {
  EXPECT_EQ(plain_stack("TID 1:\n#0  0x1 main\nTID 2:\n#0  0x2 idle\nTID 3:\n#0  0x3 idle\n"),
            "1 thread\n#0 main\n2 threads\n#0 idle\n");
}

TEST(PlainStack, OfNonsenseIsEmpty) { EXPECT_EQ(plain_stack("could not attach\n#"), ""); }

TEST(DescribeStacks, EqualOnesAreFolded) {
  std::vector<RankState> ranks;
  for (int rank = 0; rank < 9; ++rank)
    ranks.push_back(running(rank, stack_of(rank + 1, rank == 7 ? "compute" : "wait")));
  EXPECT_EQ(describe_stacks(ranks),
            "stack of ranks 0-6,8, train:\n"
            "  #0 wait\n"
            "stack of rank 7, train:\n"
            "  #0 compute");
}

TEST(DescribeStacks, ProblemsAreFoldedToo) {
  std::vector<RankState> ranks = {running(0, ""), running(1, "")};
  for (auto& r : ranks) r.described->processes[0].problem = "neither eu-stack nor gdb is there";
  EXPECT_EQ(describe_stacks(ranks), "ranks 0-1, train: no stack: neither eu-stack nor gdb is there");
}

TEST(DescribeRanks, SaysWhatEachDoes) {
  std::vector<RankState> ranks = {running(0, ""), running(1, "", false), RankState(), RankState(), RankState()};
  ranks[2].rank = 2;
  ranks[2].host = "far";
  control::Described ended;
  ended.pid = 9;
  for (int rank : {3, 4}) {
    auto& r = ranks[static_cast<std::size_t>(rank)];
    r.rank = rank;
    r.host = "node1";
    r.described = ended;
  }
  ranks[3].described->wait_status = 0;
  ranks[4].described->wait_status = SIGKILL;
  EXPECT_EQ(describe_ranks(ranks),
            "rank 0 on node0: pid 100 (train) sleeps in do_sys_poll, 1.5 s of CPU; joined\n"
            "rank 1 on node0: pid 101 (train) sleeps in do_sys_poll, 1.5 s of CPU; has not joined\n"
            "rank 2 on far: no answer from its agent\n"
            "rank 3 on node1: exited with status 0\n"
            "rank 4 on node1: killed by SIGKILL (killed)");
}

// A program without libdrun: none of its ranks joins the rendezvous.
TEST(DescribeRanks, SaysNothingOfJoiningWhereNobodyHas) {
  EXPECT_EQ(describe_ranks({running(0, "", false), running(1, "", false)}),
            "rank 0 on node0: pid 100 (train) sleeps in do_sys_poll, 1.5 s of CPU\n"
            "rank 1 on node0: pid 101 (train) sleeps in do_sys_poll, 1.5 s of CPU");
}

TEST(DescribeStacks, NamesPySpyWhereAPythonHasNone) {
  auto rank = running(0, "");
  rank.described->processes[0].name = "python3";
  rank.described->processes[0].problem = "gdb did not finish in time";
  EXPECT_EQ(
      describe_stacks({rank}),
      "rank 0, python3: no stack: gdb did not finish in time (pip install py-spy there shows the lines of Python)");
}

}  // namespace
}  // namespace drun::launcher
