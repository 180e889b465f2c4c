// The smallest drun program: prints its rank, and one sum over all ranks.
#include <unistd.h>

#include <cstdio>

#include "drun/drun.hpp"

int main() {
  try {
    drun::Communicator all;
    char host[256] = {};
    gethostname(host, sizeof host - 1);
    const int sum = all.allreduce(all.rank() + 1);
    std::printf("hello from rank %d of %d (local %d of %d) on %s: 1 + ... + %d = %d\n", all.rank(), all.size(),
                all.local_rank(), all.local_size(), host, all.size(), sum);
    return sum == all.size() * (all.size() + 1) / 2 ? 0 : 1;
  } catch (const drun::Error& e) {
    std::fprintf(stderr, "hello: %s\n", e.what());
    return 1;
  }
}
