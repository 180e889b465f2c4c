// A third-party program that uses an installed drun, alone or as a job.
#include <cstdio>
#include <drun/drun.hpp>
#include <drun/training.hpp>
#include <vector>

int main() {
  drun::Communicator all;
  drun::CallOptions options;
  options.name = "twice";
  options.postscale = 2;
  const float value = 20.5f;
  float twice = 0;
  all.reduce(&value, &twice, 1, DRUN_SUM, 0, options);
  if (all.rank() == 0 && twice != 41 * all.size()) return 1;
  std::vector<float> weights{1, 2, 3}, gradients{0, 4, 1};
  drun::DistributedOptimizer optimizer([&] { weights[1] -= gradients[1] + gradients[2]; },
                                       drun::parse_method("topk=0.3"));
  optimizer.add("weights", weights.data(), gradients.data(), weights.size());
  optimizer.step();
  if (weights[1] != -2) return 1;
  std::printf("size %d, sum %d, drun %s\n", all.size(), all.allreduce(41) + 1, drun_version());
  return 0;
}
