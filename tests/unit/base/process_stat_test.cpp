#include "base/process_stat.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

namespace drun {
namespace {

std::string stat_line(const std::string& name, char state, int parent, int threads) {
  return "42 (" + name + ") " + state + " " + std::to_string(parent) + " 42 42 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 " +
         std::to_string(threads) + " 0 98765 1 2 3\n";
}

TEST(ProcStat, NamesMayHoldAnything) {
  for (const std::string name : {"sleep", "a b", "a) S 1 (b", "((", ") Z 9"}) {
    const auto stat = parse_stat(stat_line(name, 'S', 7, 1));
    ASSERT_TRUE(stat.has_value()) << name;
    EXPECT_EQ(stat->name, name);
    EXPECT_EQ(stat->pid, 42) << name;
    EXPECT_EQ(stat->parent, 7) << name;
    EXPECT_EQ(stat->start, 98765u) << name;
    EXPECT_EQ(stat->state, 'S') << name;
    EXPECT_EQ(stat->cpu, 5u + 6u) << name;
    EXPECT_FALSE(stat->over) << name;
  }
}

TEST(ProcStat, AZombieIsOverUnlessItsThreadsLive) {
  EXPECT_TRUE(parse_stat(stat_line("x", 'Z', 1, 1))->over);
  EXPECT_TRUE(parse_stat(stat_line("x", 'X', 1, 1))->over);
  EXPECT_FALSE(parse_stat(stat_line("x", 'Z', 1, 3))->over);
  EXPECT_FALSE(parse_stat(stat_line("x", 'T', 1, 1))->over);
  EXPECT_FALSE(parse_stat(stat_line("x", 'D', 1, 1))->over);
}

TEST(ProcStat, BrokenLinesAreNone) {
  for (const char* line : {"", "42", "x (x) S 1 42 42 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 9", "42 (x", "42 (x) ",
                           "42 (x) S 1", "42 (x) S x 42 42 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 9"}) {
    EXPECT_FALSE(parse_stat(line).has_value()) << line;
  }
}

TEST(ProcStat, OfRealProcesses) {
  const auto own = own_stat();
  ASSERT_TRUE(own.has_value());
  EXPECT_EQ(own->pid, ::getpid());
  EXPECT_EQ(own->parent, ::getppid());
  EXPECT_FALSE(own->over);
  EXPECT_EQ(stat_of(::getpid())->start, own->start);

  const pid_t child = ::fork();
  if (child == 0) ::_exit(0);
  siginfo_t info;
  ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT), 0);
  const auto zombie = stat_of(child);
  EXPECT_TRUE(zombie && zombie->over && zombie->parent == ::getpid());
  EXPECT_EQ(::waitpid(child, nullptr, 0), child);
  EXPECT_FALSE(stat_of(child).has_value());
}

}  // namespace
}  // namespace drun
