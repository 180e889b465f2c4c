#include "cli/argv.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace drun::cli {
namespace {

using Words = std::vector<std::string>;

const ValueOptions kValues{"--hosts",
                           "-H",
                           "--ssh-port",
                           "-p",
                           "-i",
                           "-F",
                           "-x",
                           "--num-proc",
                           "--nproc-per-node",
                           "--hostfile",
                           "--output-filename",
                           "--network-interfaces"};

struct Row {
  Words args, options, command;
};

TEST(Argv, RewritesAndSplits) {
  const Row table[] = {
      {{}, {}, {}},
      {{"./train"}, {}, {"./train"}},
      {{"-np", "2", "-H", "localhost:1,host1:1", "-p", "12345", "./train"},
       {"--num-proc", "2", "-H", "localhost:1,host1:1", "-p", "12345"},
       {"./train"}},
      {{"-np=4", "x"}, {"--num-proc=4"}, {"x"}},
      {{"-np4", "x"}, {"--num-proc=4"}, {"x"}},
      {{"-np", "-1", "x"}, {"--num-proc", "-1"}, {"x"}},
      {{"--num-proc", "2", "x"}, {"--num-proc", "2"}, {"x"}},
      {{"-hostfile", "hosts", "x"}, {"--hostfile", "hosts"}, {"x"}},
      {{"-hostfile=hosts", "x"}, {"--hostfile=hosts"}, {"x"}},
      {{"--hostfile", "hosts", "python3", "train.py"}, {"--hostfile", "hosts"}, {"python3", "train.py"}},
      // options of mpirun, srun and torchrun
      {{"-n", "2", "--host", "a,b", "x"}, {"--num-proc", "2", "--hosts", "a,b"}, {"x"}},
      {{"-n2", "-host", "a", "x"}, {"--num-proc=2", "--hosts", "a"}, {"x"}},
      {{"--np=2", "--ntasks", "3", "x"}, {"--num-proc=2", "--num-proc", "3"}, {"x"}},
      {{"-machinefile", "h", "--machinefile=g", "x"}, {"--hostfile", "h", "--hostfile=g"}, {"x"}},
      {{"-nb", "x"}, {"-nb"}, {"x"}},
      // the command's own arguments stay as they are
      {{"-np", "2", "mpi", "-np", "4", "-hostfile", "h"}, {"--num-proc", "2"}, {"mpi", "-np", "4", "-hostfile", "h"}},
      {{"./x", "--", "-np", "1"}, {}, {"./x", "--", "-np", "1"}},
      {{"-np", "1", "--", "./x", "-np", "3"}, {"--num-proc", "1"}, {"./x", "-np", "3"}},
      {{"--", "-np"}, {}, {"-np"}},
      {{"--", "--", "a"}, {}, {"--", "a"}},
      {{"--"}, {}, {}},
      {{"-v", "x", "-v"}, {"-v"}, {"x", "-v"}},
      // values that look like options
      {{"-x", "-np", "y"}, {"-x", "-np"}, {"y"}},
      {{"-x", "-hostfile", "-np", "2", "y"}, {"-x", "-hostfile", "--num-proc", "2"}, {"y"}},
      {{"-x", "--", "y"}, {"-x", "--"}, {"y"}},
      {{"-np", "-np", "y"}, {"--num-proc", "-np"}, {"y"}},
      {{"--hosts", "-np", "y"}, {"--hosts", "-np"}, {"y"}},
      // attached values
      {{"-Hlocalhost:2", "y"}, {"-Hlocalhost:2"}, {"y"}},
      {{"-p12345", "y"}, {"-p12345"}, {"y"}},
      {{"-xNAME", "y"}, {"-xNAME"}, {"y"}},
      {{"-xA=1", "-xB", "y"}, {"-xA=1", "-xB"}, {"y"}},
      {{"--hosts=a:1", "y"}, {"--hosts=a:1"}, {"y"}},
      {{"--hosts=", "y"}, {"--hosts="}, {"y"}},
      // flags, alone and bundled
      {{"--json", "-v", "y"}, {"--json", "-v"}, {"y"}},
      {{"-vv", "y"}, {"-vv"}, {"y"}},
      {{"-vp", "22", "y"}, {"-vp", "22"}, {"y"}},
      {{"-vp22", "y"}, {"-vp22"}, {"y"}},
      {{"--unknown", "y", "-np"}, {"--unknown"}, {"y", "-np"}},
      // CLI11 reports a missing value
      {{"-np"}, {"--num-proc"}, {}},
      {{"-v", "-H"}, {"-v", "-H"}, {}},
      // a forgotten comma: the second item becomes the command, where the error is noticed
      {{"-np", "4", "-H", "a:2", "b:2", "./train"}, {"--num-proc", "4", "-H", "a:2"}, {"b:2", "./train"}},
      // the word run
      {{"run", "-np", "2", "y"}, {"--num-proc", "2"}, {"y"}},
      {{"run"}, {}, {}},
      {{"run", "run"}, {}, {"run"}},
      {{"run", "--", "run"}, {}, {"run"}},
      {{"./run", "-np", "2"}, {}, {"./run", "-np", "2"}},
      {{"-v", "run", "-np"}, {"-v"}, {"run", "-np"}},
      {{"--", "run"}, {}, {"run"}},
      {{"running"}, {}, {"running"}},
      // odd words
      {{"-", "x"}, {}, {"-", "x"}},
      {{"", "x"}, {}, {"", "x"}},
      {{"-npx", "y"}, {"-npx"}, {"y"}},
      {{"-nproc", "2", "y"}, {"-nproc"}, {"2", "y"}},
      {{"--npp", "2", "y"}, {"--npp"}, {"2", "y"}},
      {{"-hostfiles", "y"}, {"-hostfiles"}, {"y"}},
      {{"-x", "V=two words\nand a line", "my prog", ""}, {"-x", "V=two words\nand a line"}, {"my prog", ""}},
  };
  for (const auto& t : table) {
    const SplitArgs split = split_command(rewrite_argv(t.args, kValues), kValues);
    EXPECT_EQ(split.options, t.options) << ::testing::PrintToString(t.args);
    EXPECT_EQ(split.command, t.command) << ::testing::PrintToString(t.args);
  }
}

TEST(Argv, OptionsOfHydra) {
  EXPECT_EQ(
      rewrite_argv({"-hosts", "a,b", "-ppn", "2", "-f", "h", "-iface=eth0", "-perhost", "1", "-prepend-rank", "x"},
                   kValues),
      (Words{"--hosts", "a,b", "--nproc-per-node", "2", "--hostfile", "h", "--network-interfaces=eth0",
             "--nproc-per-node", "1", "--tag-output", "x"}));
}

TEST(Argv, LettersBehindOneDashThatWouldBeMisread) {
  const auto misread = [](const Words& args) { return misread_option(args, kValues).value_or(""); };
  EXPECT_EQ(misread({"-hostlist", "a", "x"}), "-hostlist") << "not -h";
  EXPECT_EQ(misread({"-v", "-pernode", "x"}), "-pernode") << "not -p ernode";
  EXPECT_EQ(misread({"-vhost", "x"}), "-vhost");
  EXPECT_EQ(misread({"-p=x", "y"}), "-p=x");
  for (const Words& good :
       {Words{"-h"}, Words{"-vh"}, Words{"-p12345", "x"}, Words{"-vp22", "x"}, Words{"-vp", "22", "x"},
        Words{"-Hhost1", "x"}, Words{"-hosts", "a", "x"}, Words{"-hostfile", "h", "x"}, Words{"-x", "-hostlist", "y"},
        Words{"-xhome", "y"}, Words{"y", "-hostlist"}, Words{"--", "-hostlist"}, Words{"--hostlist", "a"}}) {
    EXPECT_EQ(misread(good), "") << good[0];
  }
}

TEST(Argv, RewritingKeepsTheCommandInPlace) {
  EXPECT_EQ(rewrite_argv({"run", "-np", "2", "--", "x", "-np", "3"}, kValues),
            (Words{"run", "--num-proc", "2", "--", "x", "-np", "3"}));
}

TEST(Argv, RewritingTwiceChangesNothingMore) {
  const Words once = rewrite_argv({"-np", "2", "-hostfile=f", "-x", "-np", "y", "-np"}, kValues);
  EXPECT_EQ(rewrite_argv(once, kValues), once);
}

TEST(Argv, SplitsTheSameBeforeTheRewrite) {
  const Words args{"-np", "2", "-hostfile", "f", "-v", "y", "-np"};
  EXPECT_EQ(split_command(args, kValues).command, (Words{"y", "-np"}));
  EXPECT_EQ(split_command(args, kValues).options, (Words{"-np", "2", "-hostfile", "f", "-v"}));
}

TEST(Argv, LeavesAWordThatHasAMeaningHere) {
  ValueOptions values = kValues;
  values.insert("-n");  // iterations, in drun bench
  EXPECT_EQ(rewrite_argv({"-n", "20", "-n5", "-np", "2"}, values), (Words{"-n", "20", "-n5", "--num-proc", "2"}));
}

TEST(Argv, KnowsItsOwnWordsWithoutATable) {
  const SplitArgs split = split_command(rewrite_argv({"-np", "2", "--hostfile", "f", "y"}, {}), {});
  EXPECT_EQ(split.options, (Words{"--num-proc", "2", "--hostfile", "f"}));
  EXPECT_EQ(split.command, (Words{"y"}));
}

}  // namespace
}  // namespace drun::cli
