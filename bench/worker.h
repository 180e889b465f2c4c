// The worker of `drun bench`: drun-bench-agent, the agent itself, which starts it on every host in place of a user's
// program. It uses libdrun as any program would.
#pragma once

#include <string>
#include <vector>

namespace drun::bench {

constexpr const char* kAgentProgram = "drun-bench-agent";
// The first argument that makes it a worker; the words of settings.h follow.
constexpr const char* kWorkerWord = "bench-worker";
// The program that the agent executes: itself, wherever drun has put it.
constexpr const char* kWorkerPath = "/proc/self/exe";

// Measures, as one rank of the job; rank 0 writes the report to stdout. Returns the exit status: 0 success, 1 a
// result was wrong (on rank 0) or libdrun failed, 2 the words are invalid or don't fit the number of ranks.
int run_worker(const std::vector<std::string>& words, const std::string& version);

}  // namespace drun::bench
