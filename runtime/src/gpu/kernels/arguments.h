// Arguments of kernels, for the compilers of the host and of the device. Addresses are those of device memory. All fit
// into the 4 KiB that a kernel's parameters may have: a launch needs no other memory, and can be captured in a CUDA
// graph.
#pragma once

#include <cstdint>

namespace drun::runtime::gpu {

inline constexpr unsigned kThreads = 256;  // per block
inline constexpr unsigned kMaxPieces = 120;
inline constexpr std::uint64_t kChunk = 8192;  // elements of a piece that a block processes at once
inline constexpr std::uint64_t kTile = 4096;   // elements in which a block counts, and takes, the chosen ones at once
// A thread has kRounds times as many neighbors of a tile.
inline constexpr unsigned kNeighbors = 4, kRounds = static_cast<unsigned>(kTile) / kThreads / kNeighbors;
inline constexpr unsigned kDigitBits = 11, kBins = 1u << kDigitBits;
inline constexpr std::uint64_t kSampleGroup = 32;  // neighbors that are sampled together

// A piece of a bucket: `count` elements at `memory`, which begin at element `begin` of the bucket. A gap, which is to
// be filled with zeros, if `memory` is 0.
struct PieceArgument {
  std::uint64_t memory, count, begin;
  std::uint64_t first_chunk;  // number of chunks of the pieces before; gaps have none
};

struct PieceArguments {
  PieceArgument pieces[kMaxPieces];  // none is empty
  std::uint64_t n_pieces, n_chunks;
  std::uint64_t bucket;
  double factor, limit;
  std::uint64_t n_cut;  // address of a counter
};
static_assert(sizeof(PieceArguments) <= 4096);

struct ElementArguments {
  std::uint64_t data, other, count;
  double factor;
};

enum class Choice : std::uint32_t { kTopK, kThreshold };
// Place of the candidates: among all values, or in the list of the large ones.
enum class Source : std::uint32_t { kValues, kList };

// State of a selection, in device memory, before the groups, the tiles and the list.
struct Selection {
  std::uint64_t n_chosen;  // set once the tiles are counted; first, so that a program can read it
  // kTopK: the known bits of the smallest magnitude that is chosen, and the number of elements of that magnitude to
  // choose.
  std::uint64_t least, n_equal;
  double threshold;  // for f32 a number that is one
  Choice choice;
  Source source;
  std::uint64_t pivot;     // bits of the smallest magnitude that is listed
  std::uint64_t n_listed;  // counts on if the list is full
  std::uint32_t n_done;    // blocks of the running kernel that are done
  std::uint32_t padding;
  std::uint64_t histogram[kBins];
};

// The number of elements above `least`, and the number equal to it.
struct Tile {
  std::uint64_t n_above, n_equal;        // only if the candidates are all values
  std::uint64_t first_listed, n_listed;  // in the list
};
// Tiles in a group, one after the other. First the counts in the group, then those in all groups before it.
inline constexpr unsigned kTilesOfGroup = 32;
struct TileGroup {
  std::uint64_t n_above, n_equal;
};

// The list has values and, as std::uint16_t, their places in their tiles.
struct SelectArguments {
  std::uint64_t selection, groups, tiles, list, places;  // addresses
  std::uint64_t max_listed;
  std::uint64_t values, count, n_tiles, n_groups;
  std::uint64_t k;
  std::uint64_t n_sampled, sample_rank;  // a sample of `count`, in groups; its element of that rank becomes the pivot
  double threshold;
  Choice choice;
  std::uint32_t shift;         // of the current digit
  std::uint64_t known;         // mask of the known bits of `least`
  std::uint64_t indices, out;  // addresses for the elements that are taken
};

struct ScatterArguments {
  std::uint64_t data, count;
  std::uint64_t indices, values, n;
  std::uint64_t n_bad;  // address of a counter
};

// Dot products of two vectors, in double precision.
struct Dots {
  double ab, aa, bb;
};

struct DotsArguments {
  std::uint64_t a, b, count;
  std::uint64_t parts, n_parts;  // address of the Dots of each kChunk elements
  std::uint64_t dots;            // address of those of all elements
  std::uint64_t into;
};

}  // namespace drun::runtime::gpu
