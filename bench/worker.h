// The worker of `drun bench`: drun-agent, started by itself on every host in place of a program of the user's. It uses
// libdrun as any program would.
#pragma once

#include <string>
#include <vector>

namespace drun::bench {

// The first argument that makes a worker of drun-agent; settings.h's words follow.
constexpr const char* kWorkerWord = "bench-worker";
// What the agent executes: itself, wherever drun has put it.
constexpr const char* kWorkerPath = "/proc/self/exe";

// Measures, as one rank of the job; rank 0 writes the report to stdout. Returns the exit status: 0 all is right, 1 a
// result was wrong or libdrun failed, 2 the words make no sense.
int run_worker(const std::vector<std::string>& words, const std::string& version);

}  // namespace drun::bench
