// drun-agent: started by drun on every host, over ssh or directly. Not for users: without drun it only waits. It is
// also the worker program of `drun bench`, which an agent starts and which runs no agent code.
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <exception>
#include <string>
#include <vector>

#include "agent/agent.h"
#include "agent/guard.h"
#include "base/fd.h"
#include "bench/gpu_worker.h"
#include "bench/settings.h"
#include "bench/worker.h"

namespace {

int run_agent(drun::agent::GuardLink link) {
  try {
    drun::agent::Agent agent(std::move(link));
    return agent.run();
  } catch (const std::exception& e) {
    std::fprintf(stderr, "drun-agent: internal error: %s\n", e.what());
    return 70;
  }
}

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
  if (argc > 1 && std::strcmp(argv[1], "--version") == 0) {
    std::puts("drun-agent " DRUN_VERSION);
    return 0;
  }
  if (argc > 1 && std::strcmp(argv[1], drun::bench::kWorkerWord) == 0) return run_bench(argc, argv);
  if (argc > 1 || ::isatty(STDIN_FILENO) == 1) {
    std::fputs("drun-agent is started by drun on each host of a job; see `drun --help`\n", stderr);
    return 2;
  }
  drun::agent::run_guarded(run_agent, argv);
}
