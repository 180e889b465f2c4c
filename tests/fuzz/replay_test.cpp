// Runs every target on its seeds and on the files of its corpus.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>

#include "tests/fuzz/fuzz.h"

namespace drun::fuzz {

// By name in GoogleTest's messages.
void PrintTo(const Target* target, std::ostream* out) { *out << target->name; }

namespace {

class Corpus : public ::testing::TestWithParam<const Target*> {};

std::string bytes_of(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

TEST_P(Corpus, IsHandled) {
  const Target& target = *GetParam();
  // If the process ends, the last line names the input.
  std::size_t number = 0;
  for (const auto& seed : target.seeds()) {
    std::cerr << target.name << ": seed " << number++ << "\n";
    target.run(seed);
  }
  EXPECT_GT(number, 0u);
  std::vector<std::filesystem::path> files;
  for (const auto& file : std::filesystem::directory_iterator(std::filesystem::path(DRUN_FUZZ_CORPUS) / target.name)) {
    files.push_back(file.path());
  }
  std::sort(files.begin(), files.end());
  EXPECT_FALSE(files.empty());
  for (const auto& file : files) {
    std::cerr << file.string() << "\n";
    target.run(bytes_of(file));
  }
}

INSTANTIATE_TEST_SUITE_P(Fuzz, Corpus, ::testing::ValuesIn(targets()),
                         [](const auto& one) { return std::string(one.param->name); });

TEST(Corpus, HasNoFolderWithoutTarget) {
  for (const auto& folder : std::filesystem::directory_iterator(DRUN_FUZZ_CORPUS)) {
    const std::string name = folder.path().filename();
    const bool known =
        std::any_of(targets().begin(), targets().end(), [&](const auto* target) { return target->name == name; });
    EXPECT_TRUE(known) << name;
  }
}

}  // namespace
}  // namespace drun::fuzz
