#include "agent/shell_word.h"

#include <gtest/gtest.h>

namespace drun::agent {
namespace {

std::string hint(const std::vector<std::string>& argv) { return hint_for_shell_word(argv, false); }

TEST(ShellWord, AWholeLineIsForAShell) {
  EXPECT_EQ(hint({"echo hello && hostname"}), "it is a line for a shell: sh -c 'echo hello && hostname'");
  EXPECT_EQ(hint({"cd /data; ./train"}), "it is a line for a shell: sh -c 'cd /data; ./train'");
  EXPECT_EQ(hint({"echo it's $RANK"}), "it is a line for a shell: sh -c 'echo it'\\''s $RANK'");
  EXPECT_EQ(hint_for_shell_word({"./train --lr 1"}, true), "it is a line for a shell: sh -c './train --lr 1'");
}

TEST(ShellWord, APathWithASpaceIsNoLine) { EXPECT_EQ(hint({"/data/my train"}), ""); }

TEST(ShellWord, VariablesAndDirectoryHaveOptions) {
  EXPECT_EQ(hint({"FOO=1", "python3", "a b.py"}), "-x FOO=1 python3 'a b.py'");
  EXPECT_EQ(hint({"FOO=a b"}), "-x 'FOO=a b'");
  EXPECT_EQ(hint({"export", "FOO=1"}), "-x FOO=1");
  EXPECT_EQ(hint({"cd", "/my data"}), "--wdir '/my data'");
}

TEST(ShellWord, WhatIsNoVariableIsNone) {
  for (const char* word : {"=x", "1a=x", "a-b=x", "FOO"}) EXPECT_EQ(hint({word}), "") << word;
}

TEST(ShellWord, WordsOfTheShellGoIntoOne) {
  EXPECT_EQ(hint({"source", "env.sh"}), "it is a word of the shell's: bash -c 'source env.sh && ...'");
  EXPECT_EQ(hint({"time", "python3", "train.py"}), "it is a word of the shell's: bash -c 'time python3 train.py'");
  EXPECT_EQ(hint({"module", "load", "cuda"}), "it is a function of the shell's: bash -lc 'module load cuda && ...'");
}

TEST(ShellWord, OtherWordsAreNone) {
  for (const char* word : {"train", "./train", "train.py", "cd", "export"}) EXPECT_EQ(hint({word}), "") << word;
}

TEST(ShellWord, FirstWordEndsAtASpace) {
  EXPECT_EQ(first_word(" ./train --lr"), "./train");
  EXPECT_EQ(first_word("train"), "train");
  EXPECT_EQ(first_word(" "), "");
}

}  // namespace
}  // namespace drun::agent
