// The program that is embedded in the agent: see gpu_worker.h.
#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include "bench/worker.h"

int main(int argc, char** argv) {
  try {
    const int first = argc < 2 ? argc : 2;
    return drun::bench::run_worker(std::vector<std::string>(argv + first, argv + argc), DRUN_VERSION);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "drun bench: internal error: %s\n", e.what());
    return 70;
  }
}
