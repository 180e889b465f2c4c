// The program drun-agent, without the worker of `drun bench`.
#pragma once

namespace drun::agent {

// Prints the version for `--version`; else becomes the guard and the agent, on stdin and stdout. Returns only for
// `--version` and for wrong usage: the exit status.
int agent_main(int argc, char** argv);

}  // namespace drun::agent
