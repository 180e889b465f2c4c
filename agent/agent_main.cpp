#include "agent/agent_main.h"

#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <exception>
#include <utility>

#include "agent/agent.h"
#include "agent/guard.h"
#include "bench/worker.h"

namespace drun::agent {
namespace {

int run_agent(GuardLink link) {
  try {
    Agent agent(std::move(link));
    return agent.run();
  } catch (const std::exception& e) {
    std::fprintf(stderr, "drun-agent: internal error: %s\n", e.what());
    return 70;
  }
}

}  // namespace

int agent_main(int argc, char** argv) {
  if (argc > 1 && std::strcmp(argv[1], "--version") == 0) {
    std::puts("drun-agent " DRUN_VERSION);
    return 0;
  }
  if (argc > 1 && std::strcmp(argv[1], bench::kWorkerWord) == 0) {
    std::fprintf(stderr, "drun bench: %s is no worker: name %s in --agent-path\n", argv[0], bench::kAgentProgram);
    return 2;
  }
  if (argc > 1 || ::isatty(STDIN_FILENO) == 1) {
    std::fputs("drun-agent is started by drun on each host of a job; see `drun --help`\n", stderr);
    return 2;
  }
  run_guarded(run_agent, argv);
}

}  // namespace drun::agent
