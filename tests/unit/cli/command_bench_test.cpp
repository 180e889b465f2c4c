#include <gtest/gtest.h>

#include <algorithm>

#include "cli/command_bench.h"

namespace drun::cli {
namespace {

using bench::Kind;

TEST(BenchOptions, DefaultsAreThoseOfNcclTests) {
  const auto c = parse_bench({}, {});
  ASSERT_TRUE(c.has_value()) << c.error().message();
  EXPECT_EQ(c->settings[0].kind, Kind::kAllReduce);
  EXPECT_EQ(c->settings[0].min_bytes, 32u << 20);
  EXPECT_EQ(c->settings[0].max_bytes, 32u << 20);
  EXPECT_EQ(c->settings[0].n_iterations, 20);
  EXPECT_EQ(c->settings[0].n_warmups, 1);
  EXPECT_EQ(c->settings[0].n_checks, 1);
  EXPECT_EQ(c->settings[0].dtypes, std::vector<drun_dtype>{DRUN_FLOAT32});
  EXPECT_FALSE(c->settings[0].json);
}

TEST(BenchOptions, AreThoseOfNcclTestsAndOfRunForHosts) {
  const auto c = parse_bench(
      {"-np", "4",   "-H", "a:2,b:2", "-p",      "12345", "-b", "8",    "-e",     "128M", "-f",
       "2",   "-i",  "2K", "-n",      "5",       "-w",    "0",  "-c",   "2",      "-o",   "reduce",
       "-d",  "all", "-r", "3",       "--redop", "max",   "-F", "none", "--json", "-x",   "DRUN_SHARED_MEMORY=0"},
      {});
  ASSERT_TRUE(c.has_value()) << c.error().message();
  EXPECT_EQ(c->job.np, 4);
  ASSERT_EQ(c->job.hosts.size(), 2u);
  EXPECT_EQ(c->job.hosts[1].name, "b");
  EXPECT_EQ(c->job.connect.ssh.port, 12345);
  EXPECT_EQ(c->job.env.exports, std::vector<std::string>{"DRUN_SHARED_MEMORY=0"});
  EXPECT_EQ(c->settings[0].kind, Kind::kReduce);
  EXPECT_EQ(c->settings[0].min_bytes, 8u);
  EXPECT_EQ(c->settings[0].max_bytes, 128u << 20);
  EXPECT_EQ(c->settings[0].factor, 2u);
  EXPECT_EQ(c->settings[0].step_bytes, 2048u);
  EXPECT_EQ(c->settings[0].n_iterations, 5);
  EXPECT_EQ(c->settings[0].n_warmups, 0);
  EXPECT_EQ(c->settings[0].n_checks, 2);
  EXPECT_EQ(c->settings[0].dtypes.size(), 10u);
  EXPECT_EQ(c->settings[0].ops, std::vector<drun_op>{DRUN_MAX});
  EXPECT_EQ(c->settings[0].root, 3);
  EXPECT_TRUE(c->settings[0].json);
}

TEST(BenchOptions, LongNamesAreThoseOfNcclTests) {
  const auto c = parse_bench({"--minbytes=8", "--maxbytes=1M", "--stepfactor=4", "--iters=3", "--warmup_iters=2",
                              "--check=0", "--datatype=half", "--root=0"},
                             {});
  ASSERT_TRUE(c.has_value()) << c.error().message();
  EXPECT_EQ(c->settings[0].max_bytes, 1u << 20);
  EXPECT_EQ(c->settings[0].n_checks, 0);
}

TEST(BenchOptions, TheWorkerIsTheAgentItself) {
  const auto c = parse_bench({"-np", "2", "-b", "8", "-e", "8"}, {});
  ASSERT_TRUE(c.has_value());
  ASSERT_GE(c->job.command.size(), 2u);
  EXPECT_EQ(c->job.command[0], "/proc/self/exe");
  EXPECT_EQ(c->job.command[1], "bench-worker");
  const auto settings = bench::from_words({c->job.command.begin() + 2, c->job.command.end()});
  ASSERT_TRUE(settings.has_value());
  EXPECT_EQ(bench::to_words(*settings), bench::to_words(c->settings));
  // Programs read the table: no line has a prefix, and the command starts in a directory that every host has.
  EXPECT_EQ(c->job.output.tag, launcher::TagStyle::kNone);
  EXPECT_EQ(c->job.stdin_mode, launcher::StdinMode::kNone);
  EXPECT_EQ(c->job.working_directory, "/");
}

TEST(BenchOptions, OTakesWhatNcclTestsHasThere) {
  auto c = parse_bench({"-o", "max"}, {});
  ASSERT_TRUE(c.has_value());
  EXPECT_EQ(c->settings[0].kind, Kind::kAllReduce);
  EXPECT_EQ(c->settings[0].ops, std::vector<drun_op>{DRUN_MAX});
  c = parse_bench({"-o", "reduce_scatter_perf", "-o", "avg"}, {});
  ASSERT_TRUE(c.has_value());
  EXPECT_EQ(c->settings[0].kind, Kind::kReduceScatter);
  EXPECT_EQ(c->settings[0].ops, std::vector<drun_op>{DRUN_AVG});
}

TEST(BenchOptions, OTakesAList) {
  const auto c = parse_bench({"-o", "all_reduce,broadcast_perf", "-o", "barrier,max", "-b", "8", "-np", "2"}, {});
  ASSERT_TRUE(c.has_value()) << c.error().message();
  ASSERT_EQ(c->settings.size(), 3u);
  EXPECT_EQ(c->settings[0].kind, Kind::kAllReduce);
  EXPECT_EQ(c->settings[1].kind, Kind::kBroadcast);
  EXPECT_EQ(c->settings[2].kind, Kind::kBarrier);
  for (const auto& one : c->settings) {
    EXPECT_EQ(one.ops, std::vector<drun_op>{DRUN_MAX});
    EXPECT_EQ(one.min_bytes, 8u);
  }
}

TEST(BenchOptions, ComplainAndNameTheOption) {
  struct Case {
    std::vector<std::string> args;
    const char* subject;
  };
  const Case cases[] = {{{"-b", "1Q"}, "-b"},
                        {{"-e", ""}, "-e"},
                        {{"-b", "9", "-e", "8"}, "-b"},
                        {{"-i", "x"}, "-i"},
                        {{"-f", "0"}, "-f"},
                        {{"-f", "1.5"}, "-f"},
                        {{"-n", "0"}, "-n"},
                        {{"-w", "-1"}, "-w"},
                        {{"-c", "yes"}, "-c"},
                        {{"-o", "allredcue"}, "-o"},
                        {{"-o", "sendrecv"}, "-o"},
                        {{"-o", "all_reduce,"}, "-o"},
                        {{"-o", "all_reduce,sendrecv"}, "-o"},
                        {{"-o", "all_reduce,reduce", "-np", "2", "-r", "2"}, "-r"},
                        {{"-o", "all_reduce,reduce", "--redop", "adasum"}, "--redop"},
                        {{"-d", "float16"}, "-d"},
                        {{"--redop", "mulsum"}, "--redop"},
                        {{"-r", "x"}, "-r"},
                        {{"-o", "broadcast", "-np", "2", "-r", "2"}, "-r"},
                        {{"-np", "0"}, "-np"},
                        {{"-np", "3", "-H", "a:2"}, "-np 3"},
                        {{"--minbyte", "8"}, "--minbyte"},
                        {{"-x", "NOT_SET"}, "-x NOT_SET"},
                        {{"./train"}, "options"}};
  for (const auto& [args, subject] : cases) {
    const auto c = parse_bench(args, {});
    ASSERT_FALSE(c.has_value()) << args[0] << " " << args.back();
    EXPECT_EQ(c.error().code, Errc::kUsage);
    EXPECT_EQ(c.error().subject, subject);
  }
}

TEST(BenchOptions, ANearNameIsSuggested) {
  EXPECT_EQ(parse_bench({"-o", "all_redcue"}, {}).error().hint, "-o all_reduce");
}

TEST(BenchOptions, HelpNamesThemAll) {
  const auto c = parse_bench({"--help"}, {});
  ASSERT_TRUE(c.has_value());
  for (const char* word :
       {"-b,", "-e,", "-f,", "-i,", "-n,", "-w,", "-o ", "-d,", "-r,", "-c,", "--json", "-H,", "-p,"}) {
    EXPECT_NE(c->help.find(word), std::string::npos) << word;
  }
}

}  // namespace
}  // namespace drun::cli
