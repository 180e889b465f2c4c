// Data-parallel training with drun: every rank has a copy of the model and a part of each batch; the optimizer
// averages gradients over the ranks; rank 0 provides the initial state and alone writes the checkpoint. Any number of
// ranks gives the same model, except for rounding and for the values that --compression drops.
//
//   drun -np 2 -H localhost:2 ./train
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <numeric>
#include <stdexcept>
#include <string>
#include <vector>

#include "drun/drun.hpp"
#include "drun/training.hpp"
#include "examples/digits.h"
#include "examples/network.h"
#include "examples/random.h"
#include "examples/replicas.h"
#include "examples/samples.h"
#include "examples/train_options.h"

namespace {

using example::Digits;
using example::kHidden;
using example::Network;
using example::Options;
using example::part;
using example::Random;
using example::Result;

// One pass over the training set. Returns the sum of the losses over all ranks.
double train_epoch(drun::Communicator& all, Network& network, std::vector<double>& gradient,
                   drun::DistributedOptimizer& optimizer, const Digits& digits, std::vector<std::size_t>& order,
                   Random& random, const Options& options) {
  random.shuffle(order);  // the same on every rank: all start from the same seed
  double total_loss = 0;
  for (std::size_t begin = 0; begin < order.size(); begin += options.batch) {
    const std::size_t n = std::min(options.batch, order.size() - begin);
    const auto [from, to] = part(n, all.rank(), all.size());
    std::fill(gradient.begin(), gradient.end(), 0.0);
    Result result;
    for (std::size_t i = begin + from; i < begin + to; ++i) {
      network.add_sample(digits.image(order[i]), digits.labels[order[i]], gradient.data(), result);
    }
    // Scales so that the average over ranks is the average over samples, even if some ranks have one sample more.
    const double scale = static_cast<double>(all.size()) / static_cast<double>(n);
    for (double& value : gradient) value *= scale;
    optimizer.step();
    total_loss += result.loss;
  }
  optimizer.synchronise();
  return all.allreduce(total_loss, DRUN_SUM, {"loss"});
}

// Written to a temporary file and renamed: a checkpoint is complete or absent.
void write_checkpoint(const std::string& path, const Network& network, int epochs) {
  const std::string temporary = path + ".tmp." + std::to_string(getpid());
  std::FILE* file = std::fopen(temporary.c_str(), "w");
  bool good = file != nullptr;
  if (good) {
    std::fprintf(file, "drun-example-digits 1 %d %zu\n", epochs, network.parameters().size());
    for (const double value : network.parameters()) std::fprintf(file, "%.17g\n", value);
    good = std::fflush(file) == 0 && fsync(fileno(file)) == 0;
    good = std::fclose(file) == 0 && good;
  }
  good = good && std::rename(temporary.c_str(), path.c_str()) == 0;
  if (good) return;
  const std::string why = std::strerror(errno);
  std::remove(temporary.c_str());
  throw std::runtime_error("checkpoint " + path + ": " + why);
}

int train(const Options& options) {
  drun::Communicator all;
  const Digits digits = example::load_digits(options.data);
  example::Split images = example::split(digits.size(), options.seed);
  const auto [from, to] = part(images.train.size(), all.rank(), all.size());
  char host[256] = {};
  gethostname(host, sizeof host - 1);
  std::printf("rank %d of %d on %s: %zu of %zu samples\n", all.rank(), all.size(), host, to - from,
              images.train.size());
  std::fflush(stdout);

  Network network(example::kPixels, kHidden, example::kDigits);
  if (all.rank() == 0) network.initialise(options.seed + 1);
  all.broadcast(network.parameters(), 0);

  std::vector<double> gradient(network.parameters().size());
  const auto descend = [&] {
    for (std::size_t i = 0; i < gradient.size(); ++i) network.parameters()[i] -= options.learning_rate * gradient[i];
  };
  drun::DistributedOptimizer optimizer(descend, options.method, drun::world(), options.bucket_bytes);
  for (const auto& tensor : network.tensors()) {
    optimizer.add(tensor.name, network.parameters().data() + tensor.offset, gradient.data() + tensor.offset,
                  tensor.count);
  }

  const auto began = std::chrono::steady_clock::now();
  Random random(options.seed + 2);
  double loss = 0;
  for (int epoch = 1; epoch <= options.epochs; ++epoch) {
    loss = train_epoch(all, network, gradient, optimizer, digits, images.train, random, options) /
           static_cast<double>(images.train.size());
    const bool tell = epoch == 1 || epoch == options.epochs || epoch % 5 == 0;
    if (!tell) continue;
    const double accuracy = example::test_accuracy(all, network, digits, images.test);
    if (all.rank() == 0) {
      std::printf("epoch %2d: loss %.6f, test accuracy %.2f %%\n", epoch, loss, 100 * accuracy);
      std::fflush(stdout);
    }
  }
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;

  if (all.rank() == 0) {
    if (!options.checkpoint.empty()) write_checkpoint(options.checkpoint, network, options.epochs);
    const double norm = std::sqrt(std::inner_product(network.parameters().begin(), network.parameters().end(),
                                                     network.parameters().begin(), 0.0));
    std::printf("trained in %.2f s: final loss %.8f, norm %.8f\n", took.count(), loss, norm);
  }
  return example::tell_whether_same(all, network) ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const Options options = example::parse_options(argc, argv);
    if (options.help) return example::print_usage();
    return train(options);
  } catch (const example::UsageError& e) {
    std::fprintf(stderr, "train: %s (try --help)\n", e.what());
    return 2;
  } catch (const std::exception& e) {  // includes drun::Error
    std::fprintf(stderr, "train: %s\n", e.what());
    return 1;
  }
}
