// What somebody else's program does with an installed drun.
#include <cstdio>
#include <drun/drun.hpp>

int main() {
  drun::Communicator all;
  drun::CallOptions options;
  options.name = "twice";
  options.postscale = 2;
  const float value = 20.5f;
  float twice = 0;
  all.reduce(&value, &twice, 1, DRUN_SUM, 0, options);
  if (twice != 41) return 1;
  std::printf("size %d, sum %d, drun %s\n", all.size(), all.allreduce(41) + 1, drun_version());
  return all.size() == 1 ? 0 : 1;
}
