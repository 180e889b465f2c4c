// What kernels are given: read by the compiler of the host and by that of the device. Addresses are those of device
// memory. All within the 4 KiB that a kernel's parameters may have: a launch needs no other memory, and can be captured
// in a CUDA graph.
#pragma once

#include <cstdint>

namespace drun::runtime::gpu {

inline constexpr unsigned kThreads = 256;  // of a block
inline constexpr unsigned kMostPieces = 120;
inline constexpr std::uint64_t kChunk = 8192;  // elements of one piece that a block takes at once
inline constexpr std::uint64_t kTile = 4096;   // elements whose chosen ones a block counts, and takes, at once
inline constexpr unsigned kRows = static_cast<unsigned>(kTile) / kThreads;
inline constexpr unsigned kDigitBits = 11, kBins = 1u << kDigitBits;
inline constexpr std::uint64_t kSampleGroup = 32;  // neighbours that are sampled together

// Of a bucket: `count` elements at `memory`, which are those from `begin` on in the bucket.
struct PieceArgument {
  std::uint64_t memory, count, begin;
  std::uint64_t first_chunk;  // how many chunks the pieces before have
};

struct PieceArguments {
  PieceArgument pieces[kMostPieces];  // of at least one element each
  std::uint64_t n_pieces, n_chunks;
  std::uint64_t bucket;
  double factor, limit;
  std::uint64_t n_cut;  // the address of a counter
};
static_assert(sizeof(PieceArguments) <= 4096);

struct ElementArguments {
  std::uint64_t data, other, count;
  double factor;
};

enum class Choice : std::uint32_t { kTopK, kThreshold };
// Where the elements that may be chosen are: among all, or in the list of the large ones.
enum class Source : std::uint32_t { kValues, kList };

// In device memory, before the tiles and the list. What has been found out so far about the elements that are worth
// sending.
struct Selection {
  std::uint64_t n_chosen;  // once the tiles are known; first, so that a program finds it
  // kTopK: the bits of the least magnitude that is chosen, as far as they are known, and how many of that magnitude
  // are.
  std::uint64_t least, n_equal;
  double threshold;
  Choice choice;
  Source source;
  std::uint64_t pivot;     // the bits of the least magnitude that is listed
  std::uint64_t n_listed;  // also if there is no room for all of them
  std::uint32_t n_done;    // blocks of the kernel that runs
  std::uint32_t padding;
  std::uint64_t histogram[kBins];
};

// At first how many of a tile's elements are above `least`, and equal to it; then how many of the tiles before.
struct Tile {
  std::uint64_t n_above, n_equal;
  std::uint64_t first_listed, n_listed;  // in the list
};

// The list: values, and their places in their tiles, which are std::uint16_t.
struct SelectArguments {
  std::uint64_t selection, tiles, list, places;  // addresses
  std::uint64_t most_listed;
  std::uint64_t values, count, n_tiles;
  std::uint64_t k;
  std::uint64_t n_sampled, sample_rank;  // of `count` in groups; what has that rank in the sample becomes the pivot
  double threshold;
  Choice choice;
  std::uint32_t shift;         // of the digit that is looked at
  std::uint64_t known;         // a mask: the bits of `least` that are known
  std::uint64_t indices, out;  // what is taken
};

struct ScatterArguments {
  std::uint64_t data, count;
  std::uint64_t indices, values, n;
  std::uint64_t n_bad;  // the address of a counter
};

// Of two vectors, in double precision.
struct Dots {
  double ab, aa, bb;
};

struct DotsArguments {
  std::uint64_t a, b, count;
  std::uint64_t parts, n_parts;  // the address of Dots of each kChunk elements
  std::uint64_t dots;            // and of all
  std::uint64_t into;
};

}  // namespace drun::runtime::gpu
