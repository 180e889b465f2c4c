#include "examples/network.h"

#include <algorithm>
#include <cmath>

#include "examples/random.h"

namespace example {

Network::Network(std::size_t n_inputs, std::size_t n_hidden, std::size_t n_classes)
    : n_inputs_(n_inputs),
      n_hidden_(n_hidden),
      n_classes_(n_classes),
      parameters_((n_inputs + 1) * n_hidden + (n_hidden + 1) * n_classes),
      hidden_(n_hidden),
      output_(n_classes),
      hidden_error_(n_hidden) {}

void Network::initialise(std::uint64_t seed) {
  Random random(seed);
  std::fill(parameters_.begin(), parameters_.end(), 0.0);
  const std::size_t second = (n_inputs_ + 1) * n_hidden_;
  const auto fill = [&](std::size_t from, std::size_t n, std::size_t fan_in) {
    const double range = std::sqrt(6.0 / static_cast<double>(fan_in));
    for (std::size_t i = 0; i < n; ++i) parameters_[from + i] = range * (2 * random.uniform() - 1);
  };
  fill(0, n_inputs_ * n_hidden_, n_inputs_);
  fill(second, n_hidden_ * n_classes_, 2 * n_hidden_);
}

std::vector<Tensor> Network::tensors() const {
  std::vector<Tensor> result;
  std::size_t offset = 0;
  const auto add = [&](const char* name, std::size_t count) {
    result.push_back({name, offset, count});
    offset += count;
  };
  add("hidden.weight", n_inputs_ * n_hidden_);
  add("hidden.bias", n_hidden_);
  add("output.weight", n_hidden_ * n_classes_);
  add("output.bias", n_classes_);
  return result;
}

void Network::add_sample(const double* input, int label, double* gradient, Result& result) {
  const double* w1 = parameters_.data();
  const double* b1 = w1 + n_inputs_ * n_hidden_;
  const double* w2 = b1 + n_hidden_;
  const double* b2 = w2 + n_hidden_ * n_classes_;
  for (std::size_t h = 0; h < n_hidden_; ++h) {
    double sum = b1[h];
    for (std::size_t i = 0; i < n_inputs_; ++i) sum += w1[h * n_inputs_ + i] * input[i];
    hidden_[h] = std::max(sum, 0.0);
  }
  for (std::size_t c = 0; c < n_classes_; ++c) {
    double sum = b2[c];
    for (std::size_t h = 0; h < n_hidden_; ++h) sum += w2[c * n_hidden_ + h] * hidden_[h];
    output_[c] = sum;
  }
  const auto best = std::max_element(output_.begin(), output_.end());
  if (best - output_.begin() == label) ++result.n_correct;
  const double largest = *best;
  double total = 0;
  for (double& value : output_) total += value = std::exp(value - largest);
  for (double& value : output_) value /= total;
  result.loss -= std::log(std::max(output_[static_cast<std::size_t>(label)], 1e-300));
  if (gradient == nullptr) return;

  output_[static_cast<std::size_t>(label)] -= 1;  // now the gradient of the loss with respect to the class sums
  double* g1 = gradient;
  double* gb1 = g1 + n_inputs_ * n_hidden_;
  double* g2 = gb1 + n_hidden_;
  double* gb2 = g2 + n_hidden_ * n_classes_;
  std::fill(hidden_error_.begin(), hidden_error_.end(), 0.0);
  for (std::size_t c = 0; c < n_classes_; ++c) {
    gb2[c] += output_[c];
    for (std::size_t h = 0; h < n_hidden_; ++h) {
      g2[c * n_hidden_ + h] += output_[c] * hidden_[h];
      hidden_error_[h] += output_[c] * w2[c * n_hidden_ + h];
    }
  }
  for (std::size_t h = 0; h < n_hidden_; ++h) {
    if (hidden_[h] <= 0) continue;
    gb1[h] += hidden_error_[h];
    for (std::size_t i = 0; i < n_inputs_; ++i) g1[h * n_inputs_ + i] += hidden_error_[h] * input[i];
  }
}

}  // namespace example
