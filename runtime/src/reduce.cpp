#include "runtime/src/reduce.h"

#include <cstdint>
#include <cstring>
#include <type_traits>

namespace drun::runtime {
namespace {

// Integers are added and multiplied without sign, 32 bits at least, so that they wrap.
template <typename T>
struct Wrapping {
  using type = std::conditional_t<sizeof(T) <= 4, std::uint32_t, std::uint64_t>;
};
template <>
struct Wrapping<float> {
  using type = float;
};
template <>
struct Wrapping<double> {
  using type = double;
};

struct Sum {
  template <typename T>
  static T apply(T a, T b) {
    using W = typename Wrapping<T>::type;
    return static_cast<T>(static_cast<W>(a) + static_cast<W>(b));
  }
};
struct Product {
  template <typename T>
  static T apply(T a, T b) {
    using W = typename Wrapping<T>::type;
    return static_cast<T>(static_cast<W>(a) * static_cast<W>(b));
  }
};
// a != a: NaN.
struct Minimum {
  template <typename T>
  static T apply(T a, T b) {
    return (b < a || b != b) && a == a ? b : a;
  }
};
struct Maximum {
  template <typename T>
  static T apply(T a, T b) {
    return (b > a || b != b) && a == a ? b : a;
  }
};

// memcpy: the memory need not be aligned for T; compilers make plain vector loads of it.
template <typename T, typename Op>
void loop(char* into, const char* from, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    T a, b;
    std::memcpy(&a, into + i * sizeof(T), sizeof(T));
    std::memcpy(&b, from + i * sizeof(T), sizeof(T));
    const T result = Op::apply(a, b);
    std::memcpy(into + i * sizeof(T), &result, sizeof(T));
  }
}

template <typename T>
void accumulate_as(char* into, const char* from, std::size_t count, drun_op op) {
  switch (op) {
    case DRUN_SUM:
    case DRUN_AVG:
      return loop<T, Sum>(into, from, count);
    case DRUN_PROD:
      return loop<T, Product>(into, from, count);
    case DRUN_MIN:
      return loop<T, Minimum>(into, from, count);
    case DRUN_MAX:
      return loop<T, Maximum>(into, from, count);
    case DRUN_ADASUM:
      return;  // never: algorithm/adasum.cpp
  }
}

template <typename T>
void divide_as(char* data, std::size_t count, int size) {
  for (std::size_t i = 0; i < count; ++i) {
    T value;
    std::memcpy(&value, data + i * sizeof(T), sizeof(T));
    if constexpr (std::is_floating_point_v<T>) {
      value /= static_cast<T>(size);
    } else if constexpr (std::is_signed_v<T>) {
      value = static_cast<T>(static_cast<std::int64_t>(value) / size);
    } else {
      value = static_cast<T>(static_cast<std::uint64_t>(value) / static_cast<std::uint64_t>(size));
    }
    std::memcpy(data + i * sizeof(T), &value, sizeof(T));
  }
}

template <typename T>
void scale_as(char* data, std::size_t count, T factor) {
  for (std::size_t i = 0; i < count; ++i) {
    T value;
    std::memcpy(&value, data + i * sizeof(T), sizeof(T));
    value *= factor;
    std::memcpy(data + i * sizeof(T), &value, sizeof(T));
  }
}

// Calls `f` with a value of the element type.
template <typename F>
void with_type(drun_dtype dtype, F f) {
  switch (dtype) {
    case DRUN_INT8:
      return f(std::int8_t{});
    case DRUN_UINT8:
      return f(std::uint8_t{});
    case DRUN_INT32:
      return f(std::int32_t{});
    case DRUN_UINT32:
      return f(std::uint32_t{});
    case DRUN_INT64:
      return f(std::int64_t{});
    case DRUN_UINT64:
      return f(std::uint64_t{});
    case DRUN_FLOAT32:
      return f(float{});
    case DRUN_FLOAT64:
      return f(double{});
    case DRUN_FLOAT16:
    case DRUN_BFLOAT16:
      return;  // never: reduced_as()
  }
}

}  // namespace

void accumulate(void* into, const void* from, std::size_t count, drun_dtype dtype, drun_op op) {
  with_type(dtype, [&](auto tag) {
    accumulate_as<decltype(tag)>(static_cast<char*>(into), static_cast<const char*>(from), count, op);
  });
}

void finish(void* data, std::size_t count, drun_dtype dtype, drun_op op, int size) {
  if (op != DRUN_AVG) return;
  with_type(dtype, [&](auto tag) { divide_as<decltype(tag)>(static_cast<char*>(data), count, size); });
}

void scale(void* data, std::size_t count, drun_dtype dtype, double factor) {
  if (dtype == DRUN_FLOAT32) return scale_as<float>(static_cast<char*>(data), count, static_cast<float>(factor));
  if (dtype == DRUN_FLOAT64) return scale_as<double>(static_cast<char*>(data), count, factor);
}

}  // namespace drun::runtime
