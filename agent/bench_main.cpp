// drun-bench-agent: the agent of `drun bench`, which is also the worker program there: an agent starts it once more,
// and then it runs no agent code. It is several times larger than drun-agent, because it contains libdrun.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <exception>
#include <string>
#include <vector>

#include "agent/agent_main.h"
#include "bench/gpu_worker.h"
#include "bench/settings.h"
#include "bench/worker.h"

namespace {

int run_bench(int argc, char** argv) {
  try {
#ifdef DRUN_AGENT_IS_STATIC
    if (std::any_of(argv + 2, argv + argc,
                    [](const char* word) { return std::strcmp(word, drun::bench::kNcclWord) == 0; })) {
      std::fprintf(stderr, "drun bench: %s\n", drun::bench::become_gpu_worker(argv).message().c_str());
      return 1;
    }
#endif
    return drun::bench::run_worker(std::vector<std::string>(argv + 2, argv + argc), DRUN_VERSION);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "drun bench: internal error: %s\n", e.what());
    return 70;
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1 && std::strcmp(argv[1], drun::bench::kWorkerWord) == 0) return run_bench(argc, argv);
  return drun::agent::agent_main(argc, argv);
}
