// Writes the seeds of all targets: FOLDER/TARGET/seed-NUMBER.
#include <filesystem>
#include <fstream>
#include <iostream>

#include "tests/fuzz/fuzz.h"

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: fuzz_seeds FOLDER\n";
    return 2;
  }
  for (const auto* target : drun::fuzz::targets()) {
    const auto folder = std::filesystem::path(argv[1]) / target->name;
    std::filesystem::create_directories(folder);
    int number = 0;
    for (const auto& seed : target->seeds()) {
      std::ofstream out(folder / ("seed-" + std::to_string(number++)), std::ios::binary);
      out << seed;
    }
  }
}
