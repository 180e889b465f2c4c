#include "runtime/src/gpu/selection.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "runtime/src/dtype.h"

namespace drun::runtime::gpu {
namespace {

// The list of the large values has room for an eighth of f32 values, with their places, and for 7.5 % of f64 values.
constexpr std::size_t kListedOf = 8, kPlaceBytes = sizeof(std::uint16_t);
std::size_t list_bytes(std::size_t count) {
  return parts(count, kListedOf) * (sizeof(float) + kPlaceBytes) + alignof(double);
}

std::uint64_t n_groups_of(std::size_t count) { return parts(parts(count, kTile), kTilesOfGroup); }

// The least f32 that is not below the threshold: it chooses the same values.
double least_single(double threshold) {
  if (threshold <= 0) return 0;  // all values
  if (!(threshold <= std::numeric_limits<float>::max())) {
    return threshold > 0 ? std::numeric_limits<double>::infinity() : threshold;
  }
  const auto rounded = static_cast<float>(threshold);
  return static_cast<double>(rounded) < threshold ? std::nextafter(rounded, std::numeric_limits<float>::infinity())
                                                  : rounded;
}

}  // namespace

std::size_t selection_bytes(std::size_t count) {
  return sizeof(Selection) + n_groups_of(count) * sizeof(TileGroup) + parts(count, kTile) * sizeof(Tile) +
         list_bytes(count);
}

SelectArguments about_selection(const void* values, std::size_t count, drun_dtype dtype, const void* selection) {
  SelectArguments a{};
  a.values = device_pointer(values);
  a.count = count;
  a.n_tiles = parts(count, kTile);
  a.n_groups = n_groups_of(count);
  a.max_listed = list_bytes(count) / (size_of(dtype) + kPlaceBytes);
  a.selection = device_pointer(selection);
  a.groups = a.selection + sizeof(Selection);
  a.tiles = a.groups + a.n_groups * sizeof(TileGroup);
  a.list = a.tiles + a.n_tiles * sizeof(Tile);
  a.places = a.list + a.max_listed * size_of(dtype);
  return a;
}

void plan_sample(SelectArguments& a) {
  constexpr std::uint64_t kMin = 65'536, kPart = 64;
  const std::uint64_t wanted = std::max(kMin, a.count / kPart / kSampleGroup * kSampleGroup);
  a.n_sampled = std::min(a.count, wanted);
  a.sample_rank = a.k;
  if (a.n_sampled == a.count) return;
  const double expected = static_cast<double>(a.k) * static_cast<double>(a.n_sampled) / static_cast<double>(a.count);
  const double deviation = std::sqrt(expected * static_cast<double>(kSampleGroup));
  a.sample_rank = static_cast<std::uint64_t>(expected + 4 * deviation) + 1;
}

Status find_selection(Work& work, drun_dtype dtype, SelectArguments a, const void* selection) {
  if (auto ok = check_wide(work, dtype); !ok) return ok;
  if (a.values == 0 && a.count > 0) return wrong_argument(work.during(), "values is a null pointer");
  if (auto ok = work.begin(selection, "selection"); !ok) return ok;
  if (dtype == DRUN_FLOAT32) a.threshold = least_single(a.threshold);
  const std::string type = name_of(dtype);
  if (auto ok = work.launch("drun_begin_selection", &a, 1); !ok) return ok;
  if (a.k > 0) {
    const int n_bits = dtype == DRUN_FLOAT32 ? 31 : 63;  // bits of a magnitude
    const auto check_digit = [&a](int left) {
      a.known = ~std::uint64_t{0} << left;
      a.shift = static_cast<std::uint32_t>(std::max(left - static_cast<int>(kDigitBits), 0));
    };
    plan_sample(a);
    if (a.k <= a.max_listed && a.sample_rank <= a.n_sampled) {
      check_digit(31);  // samples are f32 for both types
      auto ok = work.launch("drun_guess_pivot_" + type, &a, parts(a.n_sampled, kThreads));
      if (ok) ok = work.launch("drun_collect_" + type, &a, a.n_tiles);
      if (!ok) return ok;
    }
    for (int left = n_bits; left > 0; left = static_cast<int>(a.shift)) {
      check_digit(left);
      if (auto ok = work.launch("drun_find_digit_" + type, &a, a.n_tiles); !ok) return ok;
    }
  }
  return work.launch("drun_count_tiles_" + type, &a, a.n_tiles);
}

}  // namespace drun::runtime::gpu
