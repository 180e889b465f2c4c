// drun-agent: started by drun on every host, over ssh or directly. Not for users: without drun it only waits.
#include "agent/agent_main.h"

int main(int argc, char** argv) { return drun::agent::agent_main(argc, argv); }
