#include "examples/train_options.h"

#include <cstdio>
#include <cstdlib>

namespace example {
namespace {

double number(const std::string& option, const std::string& text, double least, double most) {
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  if (text.empty() || *end != '\0' || !(value >= least && value <= most)) {
    throw UsageError(option + ": '" + text + "' is not a number in its range");
  }
  return value;
}

drun::Method method(const std::string& option, const std::string& text) {
  try {
    return drun::parse_method(text);
  } catch (const drun::Error& e) {
    throw UsageError(option + ": " + e.what());
  }
}

double whole(const std::string& option, const std::string& text, double least, double most) {
  const double value = number(option, text, least, most);
  if (value != static_cast<double>(static_cast<long long>(value)))
    throw UsageError(option + ": '" + text + "' is not a whole number");
  return value;
}

}  // namespace

Options parse_options(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    std::string name = argv[i];
    if (name == "-h" || name == "--help") {
      options.help = true;
      return options;
    }
    std::string value;
    const auto equals = name.find('=');
    const bool has_value = equals != std::string::npos;
    if (has_value) {
      value = name.substr(equals + 1);
      name.resize(equals);
    }
    const auto take = [&]() -> const std::string& {
      if (has_value) return value;
      if (i + 1 >= argc) throw UsageError(name + " needs a value");
      return value = argv[++i];
    };
    if (name == "--epochs")
      options.epochs = static_cast<int>(whole(name, take(), 1, 1e6));
    else if (name == "--lr")
      options.learning_rate = number(name, take(), 1e-9, 100);
    else if (name == "--batch")
      options.batch = static_cast<std::size_t>(whole(name, take(), 1, 1e6));
    else if (name == "--seed")
      options.seed = static_cast<std::uint64_t>(whole(name, take(), 0, 1e15));
    else if (name == "--data")
      options.data = take();
    else if (name == "--checkpoint")
      options.checkpoint = take();
    else if (name == "--compression")
      options.method = method(name, take());
    else if (name == "--bucket-mib")
      options.bucket_bytes = static_cast<std::size_t>(number(name, take(), 1e-4, 1e6) * (1 << 20));
    else
      throw UsageError("unknown option '" + name + "'");
  }
  return options;
}

int print_usage() {
  std::puts(
      "train [options]: trains a small network on the UCI handwritten digits, on all ranks together\n"
      "  --epochs N        passes over the training set (30)\n"
      "  --lr X            learning rate (0.2)\n"
      "  --batch N         samples per step, of all ranks together (32)\n"
      "  --seed N          of the split, the first weights and the order (1)\n"
      "  --data FILE       another CSV file: 64 pixels of 0 to 16 and the digit per line\n"
      "  --checkpoint FILE where rank 0 writes the trained model\n"
      "  --compression X   what travels (none): fp16 or bf16, gradients as halves; topk=0.01, of each tensor's "
      "gradient the\n"
      "                    hundredth that is largest; threshold=0.001, what is at least that large; partial[=4], no\n"
      "                    gradients, but a fourth of the model after each step\n"
      "  --bucket-mib X    most that travels at once, in MiB (25)");
  return 0;
}

}  // namespace example
