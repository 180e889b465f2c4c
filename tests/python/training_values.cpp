// A rank that trains by each method with given gradients: training_values FOLDER. FOLDER/in.RANK has the gradients, as
// doubles; FOLDER/cpp.RANK gets the parameters after each step. test_training.py does the same by DistributedOptimizer
// of Python and compares the bytes.
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <numeric>
#include <string>
#include <vector>

#include "drun/drun.hpp"
#include "drun/training.hpp"

namespace {

const std::vector<std::size_t> kCounts = {1, 3000, 7, 640};
constexpr int kSteps = 5;

std::vector<double> read_all(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  std::vector<double> values(bytes.size() / sizeof(double));
  std::copy_n(bytes.data(), values.size() * sizeof(double), reinterpret_cast<char*>(values.data()));
  return values;
}

template <typename T>
void train(const std::string& method, const std::vector<double>& given, std::ofstream& out) {
  const std::size_t total = std::accumulate(kCounts.begin(), kCounts.end(), std::size_t{0});
  std::vector<T> parameters(total), gradients(total);
  drun::DistributedOptimizer optimizer(
      [&] {
        for (std::size_t i = 0; i < total; ++i) parameters[i] -= gradients[i];
      },
      drun::parse_method(method));
  std::size_t begin = 0;
  for (const std::size_t count : kCounts) {
    optimizer.add(std::to_string(begin), parameters.data() + begin, gradients.data() + begin, count);
    begin += count;
  }
  const auto write = [&] {
    out.write(reinterpret_cast<const char*>(parameters.data()), static_cast<std::streamsize>(total * sizeof(T)));
  };
  for (std::size_t step = 0; step < kSteps; ++step) {
    for (std::size_t i = 0; i < total; ++i) gradients[i] = static_cast<T>(given.at(step * total + i));
    optimizer.step();
    write();
  }
  optimizer.synchronise();
  write();
}

}  // namespace

int main(int, char** argv) {
  const std::string folder = argv[1];
  drun::Communicator all;
  const std::vector<double> given = read_all(folder + "/in." + std::to_string(all.rank()));
  std::ofstream out(folder + "/cpp." + std::to_string(all.rank()), std::ios::binary);
  for (const char* method : {"fp16", "bf16"}) train<float>(method, given, out);
  for (const char* method : {"topk=0.01", "topk=0.3", "threshold=0.02", "threshold=0.3", "partial=3"}) {
    train<float>(method, given, out);
    train<double>(method, given, out);
  }
  return out.flush() ? EXIT_SUCCESS : EXIT_FAILURE;
}
