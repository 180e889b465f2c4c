// What somebody else's program does with an installed drun.
#include <cstdio>
#include <drun/drun.hpp>

int main() {
  drun::Communicator all;
  std::printf("size %d, sum %d, drun %s\n", all.size(), all.allreduce(41) + 1, drun_version());
  return all.size() == 1 ? 0 : 1;
}
