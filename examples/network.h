// A network with one hidden layer, softmax and cross entropy, which train.cpp trains. Independent of ranks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace example {

// Sums over the given samples, not averages: sums of parts add up to the sum of the whole.
struct Result {
  double loss = 0;
  std::size_t n_correct = 0;
};

// A tensor within parameters().
struct Tensor {
  std::string name;
  std::size_t offset, count;
};

class Network {
 public:
  Network(std::size_t n_inputs, std::size_t n_hidden, std::size_t n_classes);

  // Sets small random weights.
  void initialise(std::uint64_t seed);
  // Adds the sample's loss to `result` and its gradient to `gradient` (as long as parameters(); nullptr: no gradient).
  void add_sample(const double* input, int label, double* gradient, Result& result);
  // All weights and biases in one array; a gradient has the same layout.
  std::vector<double>& parameters() { return parameters_; }
  const std::vector<double>& parameters() const { return parameters_; }
  // The tensors, in order; they cover all of parameters().
  std::vector<Tensor> tensors() const;

 private:
  std::size_t n_inputs_, n_hidden_, n_classes_;
  std::vector<double> parameters_;  // first weights [hidden][input], biases, second weights [class][hidden], biases
  std::vector<double> hidden_, output_, hidden_error_;
};

}  // namespace example
