// A rank that uses the training headers as programs do, over the C functions: with every method, and with enough data
// that halves use their own algorithm. Prints its results.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#include "drun/training.hpp"

namespace {

constexpr std::size_t kCount = 50000;

float given(int rank, std::size_t i) { return std::sin(static_cast<float>(i) + 10 * static_cast<float>(rank)); }

double mean(int size, std::size_t i) {
  double sum = 0;
  for (int rank = 0; rank < size; ++rank) sum += given(rank, i);
  return sum / size;
}

// Returns the largest distance from the mean, or NaN if there is one.
double error_of(drun::Communicator& all, const std::string& method) {
  std::vector<float> parameters(kCount), gradient(kCount);
  drun::DistributedOptimizer optimizer(
      [&] {
        for (std::size_t i = 0; i < kCount; ++i) parameters[i] += gradient[i];
      },
      drun::parse_method(method), drun::world(), 60000);
  optimizer.add("low", parameters.data(), gradient.data(), 2000);
  optimizer.add("high", parameters.data() + 2000, gradient.data() + 2000, kCount - 2000);
  for (std::size_t i = 0; i < kCount; ++i) gradient[i] = given(all.rank(), i);
  optimizer.step();
  optimizer.synchronise();
  double largest = 0;
  for (std::size_t i = 0; i < kCount; ++i) {
    const double distance = std::abs(parameters[i] - mean(all.size(), i));
    if (std::isnan(distance) || distance > largest) largest = distance;
  }
  return largest;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    drun::Communicator all;
    for (const char* method : {"none", "fp16", "bf16", "topk=1", "threshold=0", "partial=3"}) {
      std::printf("%s: %.9f\n", method, error_of(all, method));
    }
    if (argc > 1 && std::string(argv[1]) == "mismatch") {
      std::vector<double> data(9);
      drun::Bucketer bucketer;
      bucketer.add("a", data.data(), 3);
      bucketer.add("b", data.data() + 3, all.rank() == 2 ? 5 : 6);
      bucketer.allreduce();
    }
  } catch (const drun::Error& e) {
    std::printf("error %d of rank %d: %s\n", e.code, e.rank, e.what());
    return 3;
  }
}
