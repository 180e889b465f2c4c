// The training of train.cpp with parameters and gradients in GPU memory: one GPU per rank, sums by NCCL, compression
// by libdrun's kernels, all on one stream. Test images and the numbers at the end are handled on the host.
//
//   drun -np 2 -H localhost:2 ./train_cuda --compression bf16
#include <cuda_runtime.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
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

using example::kDigits;
using example::kHidden;
using example::kPixels;

void check_cuda(cudaError_t error, const char* what) {
  if (error != cudaSuccess) throw std::runtime_error(std::string(what) + ": " + cudaGetErrorString(error));
}

// An array in GPU memory from drun_alloc, which is fast for collectives.
template <typename T>
class OnGpu {
 public:
  OnGpu(std::size_t count, cudaStream_t stream) : count_(count), stream_(stream) {
    void* memory = nullptr;
    drun::check(drun_alloc(&memory, count * sizeof(T), DRUN_MEMORY_DEVICE));
    data_ = static_cast<T*>(memory);
  }
  OnGpu(const std::vector<T>& values, cudaStream_t stream) : OnGpu(values.size(), stream) { put(values); }
  ~OnGpu() {
    cudaStreamSynchronize(stream_);
    drun_free(data_);
  }
  OnGpu(const OnGpu&) = delete;
  OnGpu& operator=(const OnGpu&) = delete;

  T* get() const { return data_; }
  void put(const std::vector<T>& values) {
    check_cuda(cudaMemcpyAsync(data_, values.data(), values.size() * sizeof(T), cudaMemcpyHostToDevice, stream_),
               "copy");
    check_cuda(cudaStreamSynchronize(stream_), "copy");
  }
  void clear() { check_cuda(cudaMemsetAsync(data_, 0, count_ * sizeof(T), stream_), "clear"); }
  std::vector<T> values() const {
    std::vector<T> out(count_);
    check_cuda(cudaMemcpyAsync(out.data(), data_, count_ * sizeof(T), cudaMemcpyDeviceToHost, stream_), "copy");
    check_cuda(cudaStreamSynchronize(stream_), "copy");
    return out;
  }

 private:
  T* data_ = nullptr;
  std::size_t count_;
  cudaStream_t stream_;
};

// Offsets into the parameters and gradients; the same as in Network::tensors().
constexpr std::size_t kW1 = 0, kB1 = kPixels * kHidden, kW2 = kB1 + kHidden, kB2 = kW2 + kHidden * kDigits,
                      kParameters = kB2 + kDigits;

struct Work {
  const double* pixels;
  const int* labels;
  const unsigned* samples;  // indices, of this step
  unsigned n_samples;
  double* hidden;        // [n_samples][kHidden]
  double* error;         // [n_samples][kDigits]: the gradient of the loss with respect to the class sums
  double* hidden_error;  // [n_samples][kHidden]
  double* loss;          // by sample of the whole data set
};

// One block per sample, one thread per hidden unit.
__global__ void compare(const double* parameters, Work work) {
  __shared__ double hidden[kHidden], output[kDigits];
  const unsigned thread = threadIdx.x, sample = work.samples[blockIdx.x];
  const double* const input = work.pixels + sample * kPixels;
  double sum = parameters[kB1 + thread];
  for (unsigned i = 0; i < kPixels; ++i) sum += parameters[kW1 + thread * kPixels + i] * input[i];
  hidden[thread] = sum > 0 ? sum : 0;
  work.hidden[blockIdx.x * kHidden + thread] = hidden[thread];
  __syncthreads();
  if (thread < kDigits) {
    sum = parameters[kB2 + thread];
    for (unsigned h = 0; h < kHidden; ++h) sum += parameters[kW2 + thread * kHidden + h] * hidden[h];
    output[thread] = sum;
  }
  __syncthreads();
  if (thread == 0) {
    const int label = work.labels[sample];
    double largest = output[0], total = 0;
    for (unsigned c = 1; c < kDigits; ++c) largest = output[c] > largest ? output[c] : largest;
    for (unsigned c = 0; c < kDigits; ++c) total += output[c] = exp(output[c] - largest);
    for (unsigned c = 0; c < kDigits; ++c) output[c] /= total;
    work.loss[sample] = -log(output[label] > 1e-300 ? output[label] : 1e-300);
    output[label] -= 1;
  }
  __syncthreads();
  if (thread < kDigits) work.error[blockIdx.x * kDigits + thread] = output[thread];
  double error = 0;
  for (unsigned c = 0; c < kDigits; ++c) error += output[c] * parameters[kW2 + c * kHidden + thread];
  work.hidden_error[blockIdx.x * kHidden + thread] = hidden[thread] > 0 ? error : 0;
}

// One thread per parameter. Adds the samples in their order, so that the bits are the same each time.
__global__ void add_up(Work work, double scale, double* gradient) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= kParameters) return;
  double sum = 0;
  for (unsigned s = 0; s < work.n_samples; ++s) {
    const double* const input = work.pixels + work.samples[s] * kPixels;
    if (i < kB1) {
      sum += work.hidden_error[s * kHidden + i / kPixels] * input[i % kPixels];
    } else if (i < kW2) {
      sum += work.hidden_error[s * kHidden + i - kB1];
    } else if (i < kB2) {
      sum += work.error[s * kDigits + (i - kW2) / kHidden] * work.hidden[s * kHidden + (i - kW2) % kHidden];
    } else {
      sum += work.error[s * kDigits + i - kB2];
    }
  }
  gradient[i] = sum * scale;
}

__global__ void descend(double* parameters, const double* gradient, double rate) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < kParameters) parameters[i] -= rate * gradient[i];
}

constexpr unsigned kThreads = 128, kBlocks = (kParameters + kThreads - 1) / kThreads;

// This rank's samples of one pass: those of each step, one step after the other.
struct Pass {
  std::vector<unsigned> samples;
  std::vector<unsigned> counts;          // of this rank, by step
  std::vector<std::size_t> whole_batch;  // of all ranks, by step
};

Pass next_pass(const std::vector<std::size_t>& order, std::size_t batch, int rank, int size) {
  Pass pass;
  for (std::size_t begin = 0; begin < order.size(); begin += batch) {
    const std::size_t n = std::min(batch, order.size() - begin);
    const auto [from, to] = example::part(n, rank, size);
    for (std::size_t i = begin + from; i < begin + to; ++i) pass.samples.push_back(static_cast<unsigned>(order[i]));
    pass.counts.push_back(static_cast<unsigned>(to - from));
    pass.whole_batch.push_back(n);
  }
  return pass;
}

int train(const example::Options& options) {
  drun::Communicator all;
  int n_gpus = 0, driver = 0;
  if (cudaDriverGetVersion(&driver) != cudaSuccess || driver == 0) {
    throw std::runtime_error("this host has no NVIDIA driver");
  }
  check_cuda(cudaGetDeviceCount(&n_gpus), "no GPU");
  check_cuda(cudaSetDevice(all.local_rank() % n_gpus), "cudaSetDevice");
  cudaStream_t stream = nullptr;
  check_cuda(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreate");

  const example::Digits digits = example::load_digits(options.data);
  example::Split images = example::split(digits.size(), options.seed);
  example::Network network(kPixels, kHidden, kDigits);
  if (all.rank() == 0) network.initialise(options.seed + 1);
  all.broadcast(network.parameters(), 0);

  OnGpu<double> parameters(network.parameters(), stream), gradient(kParameters, stream);
  OnGpu<double> pixels(digits.pixels, stream), loss(digits.size(), stream);
  OnGpu<int> labels(digits.labels, stream);
  const std::size_t most = options.batch;
  OnGpu<double> hidden(most * kHidden, stream), error(most * kDigits, stream), hidden_error(most * kHidden, stream);
  OnGpu<unsigned> samples(images.train.size(), stream);

  drun::WorldTransport ranks(stream);
  drun::DistributedOptimizer optimizer(
      [&] {
        descend<<<kBlocks, kThreads, 0, stream>>>(parameters.get(), gradient.get(), options.learning_rate);
        check_cuda(cudaGetLastError(), "descend");
      },
      options.method, ranks, options.bucket_bytes);
  for (const auto& tensor : network.tensors()) {
    optimizer.add(tensor.name, parameters.get() + tensor.offset, gradient.get() + tensor.offset, tensor.count);
  }

  const auto began = std::chrono::steady_clock::now();
  example::Random random(options.seed + 2);
  double mean_loss = 0;
  for (int epoch = 1; epoch <= options.epochs; ++epoch) {
    random.shuffle(images.train);  // the same on every rank: all start from the same seed
    const Pass pass = next_pass(images.train, options.batch, all.rank(), all.size());
    samples.put(pass.samples);
    loss.clear();
    std::size_t begin = 0;
    for (std::size_t step = 0; step < pass.counts.size(); begin += pass.counts[step], ++step) {
      const Work work{pixels.get(), labels.get(), samples.get() + begin, pass.counts[step],
                      hidden.get(), error.get(),  hidden_error.get(),    loss.get()};
      if (work.n_samples > 0) {
        compare<<<work.n_samples, kHidden, 0, stream>>>(parameters.get(), work);
        check_cuda(cudaGetLastError(), "compare");
      }
      // Scales so that the average over ranks is the average over samples, even if some ranks have one sample more.
      const double scale = static_cast<double>(all.size()) / static_cast<double>(pass.whole_batch[step]);
      add_up<<<kBlocks, kThreads, 0, stream>>>(work, scale, gradient.get());
      check_cuda(cudaGetLastError(), "add_up");
      optimizer.step();
    }
    optimizer.synchronise();
    const bool tell = epoch == 1 || epoch == options.epochs || epoch % 5 == 0;
    if (!tell) continue;
    const auto losses = loss.values();
    mean_loss = all.allreduce(std::accumulate(losses.begin(), losses.end(), 0.0), DRUN_SUM, {"loss"}) /
                static_cast<double>(images.train.size());
    network.parameters() = parameters.values();
    const double accuracy = example::test_accuracy(all, network, digits, images.test);
    if (all.rank() == 0) {
      std::printf("epoch %2d: loss %.6f, test accuracy %.2f %%\n", epoch, mean_loss, 100 * accuracy);
      std::fflush(stdout);
    }
  }
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;

  if (all.rank() == 0) std::printf("trained in %.2f s: final loss %.8f\n", took.count(), mean_loss);
  return example::tell_whether_same(all, network) ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const example::Options options = example::parse_options(argc, argv);
    if (options.help) return example::print_usage();
    if (!options.checkpoint.empty()) throw example::UsageError("--checkpoint: train has it, train_cuda has not");
    return train(options);
  } catch (const example::UsageError& e) {
    std::fprintf(stderr, "train_cuda: %s (try --help)\n", e.what());
    return 2;
  } catch (const std::exception& e) {  // includes drun::Error
    std::fprintf(stderr, "train_cuda: %s\n", e.what());
    return 1;
  }
}
