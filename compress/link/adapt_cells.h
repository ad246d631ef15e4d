// Cells: the rows of a part, or the columns of one of its rows. Each cell has a weight for its expected frequency
// (compress/ADAPT.md, chapters 4 and 6). The coder uses one of three views, which differ in the source of the weights
// and offer the same functions:
//   count, total(), mean          cells, the sum of their weights, and that divided by their number
//   before(cell)                  weight of all cells before this one, up to count
//   find(y)                       the cell that contains the weight y. Requires: y < total()
//   find_both(y, a, z, b)         the same for two at a time, step by step: neither waits for the other
//
// Cells are grouped in blocks of 16. A list holds the weight of all blocks before each block. It is counted through
// with no branch that depends on the data; a cell inside its block is found in the same way.
//
// Thread: plain values; views look at arrays of their owners.
#pragma once

#include <bit>
#include <cstdint>
#include <vector>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include "compress/payload/four_lanes.h"

namespace rumor::compress {

inline constexpr std::uint32_t block_bits = 4;
inline constexpr std::uint32_t block_cells = 1u << block_bits;

// Numbers that ascend, one for each block, filled up to a multiple of eight with numbers that nothing
// reaches.
inline constexpr std::uint32_t block_fill = 0x7fffffff;

inline constexpr std::uint32_t filled_up(std::uint32_t blocks) {
  return (blocks + 7) / 8 * 8;
}

// How many of 4 times `fours` numbers are not above `most` (or its lanes), counted from the beginning: the
// numbers ascend. part(i): numbers 4 i to 4 i + 3.
template <unsigned fours, class PartOf>
inline std::uint32_t not_above(Four most, const PartOf& part) {
  static_assert(fours == 2 || fours == 4);
#if defined(__SSE2__)
  const auto above = [&](unsigned i) { return reinterpret_cast<__m128i>(part(i) > most); };
  __m128i bytes = _mm_packs_epi32(above(0), above(1));
  if constexpr (fours == 4) {
    bytes = _mm_packs_epi16(bytes, _mm_packs_epi32(above(2), above(3)));
  } else {
    bytes = _mm_packs_epi16(bytes, bytes);
  }
  const auto mask = static_cast<std::uint32_t>(_mm_movemask_epi8(bytes));
  return static_cast<std::uint32_t>(std::countr_zero(mask | 1u << 4 * fours));
#else
  Four above = part(0) > most;
  for (unsigned i = 1; i < fours; ++i) above += part(i) > most;
  return 4 * fours - lanes_in(above);
#endif
}

// How many of eight numbers are not above y, the same in all four.
inline std::uint32_t eight_not_above(const std::uint32_t* numbers, Four y) {
  return not_above<2>(y, [&](unsigned i) { return four_at(numbers + 4 * i); });
}

// Sums at the beginnings of blocks, and of groups of eight blocks. They find a block without a branch that depends on
// the data. Both are padded to multiples of eight with a value that no weight reaches.
struct Blocks {
  const std::uint32_t* starts = nullptr;
  const std::uint32_t* groups = nullptr;
  std::uint32_t groups_filled = 0;

  // The last block that does not begin above y: its group, then the block.
  std::uint32_t find(std::uint32_t y) const { return find_in(find_group(y), y); }
  std::uint32_t find_group(std::uint32_t y) const {
    const std::uint32_t* at = groups;
    std::uint32_t left = groups_filled;
    while (left > 16) {
      const std::uint32_t half = left / 16 * 8;
      at += at[half] <= y ? half : 0;
      left -= half;
    }
    const Four least = four_alike(y);
    std::uint32_t group = static_cast<std::uint32_t>(at - groups) + eight_not_above(at, least) - 1;
    if (left > 8) group += eight_not_above(at + 8, least);
    return group;
  }
  std::uint32_t find_in(std::uint32_t group, std::uint32_t y) const {
    return group * 8 + eight_not_above(starts + std::size_t{group} * 8, four_alike(y)) - 1;
  }
};

// Owner of the two lists.
class BlockList {
 public:
  // For as many cells. Then starts() takes a number for each block.
  void resize(std::uint32_t cells) {
    blocks_ = (cells + block_cells - 1) / block_cells;
    const std::uint32_t filled = filled_up(blocks_);
    starts_.assign(filled, block_fill);
    groups_.assign(filled_up(filled / 8), block_fill);
  }
  std::uint32_t blocks() const { return blocks_; }
  std::uint32_t* starts() { return starts_.data(); }
  // After starts() has been written.
  void group() {
    for (std::uint32_t i = 0; i < starts_.size() / 8; ++i) groups_[i] = starts_[std::size_t{i} * 8];
  }
  Blocks view() const { return {starts_.data(), groups_.data(), static_cast<std::uint32_t>(groups_.size())}; }

 private:
  std::uint32_t blocks_ = 0;
  std::vector<std::uint32_t> starts_, groups_;
};

// All cells weigh the same.
struct AlikeCells {
  static constexpr std::uint32_t weight = 64;

  std::uint32_t count = 0, mean = weight;

  std::uint32_t before(std::uint32_t cell) const { return cell * weight; }
  std::uint32_t total() const { return count * weight; }
  std::uint32_t find(std::uint32_t y) const { return y / weight; }
  void find_both(std::uint32_t y, std::uint32_t& a, std::uint32_t z, std::uint32_t& b) const {
    a = find(y), b = find(z);
  }
};

// Weights as a list of sums, for cases where every weight is used more than once.
struct ListedCells {
  static constexpr std::uint32_t block = 8;  // cells per entry of the index

  const std::uint32_t* sums = nullptr;   // count + 1, then filled up
  const std::uint16_t* index = nullptr;  // by y >> index_shift: the last block that begins at or before it
  std::uint32_t count = 0, mean = 0;
  unsigned index_shift = 0;

  std::uint32_t before(std::uint32_t cell) const { return sums[cell]; }
  std::uint32_t total() const { return sums[count]; }
  std::uint32_t find(std::uint32_t y) const {
    const std::uint32_t* at = sums + std::size_t{index[y >> index_shift]} * block;
    while (at[block] <= y) at += block;
    return static_cast<std::uint32_t>(at - sums) + eight_not_above(at, four_alike(y)) - 1;
  }
  void find_both(std::uint32_t y, std::uint32_t& a, std::uint32_t z, std::uint32_t& b) const {
    const std::uint32_t* near = sums + std::size_t{index[y >> index_shift]} * block;
    const std::uint32_t* far = sums + std::size_t{index[z >> index_shift]} * block;
    while (near[block] <= y) near += block;
    while (far[block] <= z) far += block;
    a = static_cast<std::uint32_t>(near - sums) + eight_not_above(near, four_alike(y)) - 1;
    b = static_cast<std::uint32_t>(far - sums) + eight_not_above(far, four_alike(z)) - 1;
  }
};

// A weight for each hit so far, and one that is spread evenly or by the prediction of a history.
template <bool predicted>
struct LearnedCells {
  const std::uint32_t* prior_sums = nullptr;   // with a history: 256 a cell on the average; filled up
  const std::uint32_t* ramp = nullptr;         // without: spread() of the first block
  Blocks blocks;                               // before() of the first cell of each block
  const std::uint32_t* hits_before = nullptr;  // of each block: weight of the hits in the blocks before
  const std::uint32_t* hits_inside = nullptr;  // of each cell: weight of the hits before it in its block
  std::uint32_t count = 0, mean = 0, all = 0, shape = 0;

  std::uint32_t spread(std::uint32_t cell) const {
    if constexpr (predicted)
      return cell + static_cast<std::uint32_t>(std::uint64_t{shape} * prior_sums[cell] >> 8);
    return shape * cell;
  }
  std::uint32_t before(std::uint32_t cell) const {
    return spread(cell) + hits_before[cell >> block_bits] + hits_inside[cell];
  }
  std::uint32_t total() const { return all; }
  std::uint32_t find(std::uint32_t y) const { return find_in(blocks.find(y), y); }
  void find_both(std::uint32_t y, std::uint32_t& a, std::uint32_t z, std::uint32_t& b) const {
    const std::uint32_t near_group = blocks.find_group(y), far_group = blocks.find_group(z);
    const std::uint32_t near = blocks.find_in(near_group, y), far = blocks.find_in(far_group, z);
    a = find_in(near, y), b = find_in(far, z);
  }
  std::uint32_t find_in(std::uint32_t block, std::uint32_t y) const {
    const std::uint32_t first = block << block_bits;
    if constexpr (predicted) {
      const std::uint32_t rest = y - hits_before[block];
      const auto passed = [&](std::uint32_t at) { return spread(at) + hits_inside[at] <= rest; };
      std::uint32_t cell = first;
      cell += 4u * passed(first + 4) + 4u * passed(first + 8) + 4u * passed(first + 12);
      return cell + passed(cell + 1) + passed(cell + 2) + passed(cell + 3);
    }
    const Four rest = four_alike(y - blocks.starts[block]);
    const auto part = [&](unsigned i) {
      return four_at(ramp + 4 * i) + four_at(hits_inside + first + 4 * i);
    };
    return first + not_above<4>(rest, part) - 1;
  }
};

// Owner of such a list.
class ListedWeights {
 public:
  // Weights that weight_of(cell) gives, each at least 1, fewer than 2^31 together.
  template <class WeightOf>
  void set(std::uint32_t count, const WeightOf& weight_of) {
    if (sums_.size() < count + 2 * ListedCells::block) sums_.resize(count + 2 * ListedCells::block);
    std::uint32_t sum = 0;
    std::uint32_t* sums = sums_.data();
    for (std::uint32_t i = 0; i < count; ++i) {
      sums[i] = sum;
      sum += weight_of(i);
    }
    sums[count] = sum;
    finish(count);
  }

  // Valid until the next set().
  const ListedCells& cells() const { return cells_; }

 private:
  void finish(std::uint32_t count);

  ListedCells cells_;
  std::vector<std::uint32_t> sums_;
  std::vector<std::uint16_t> index_;
};

}  // namespace rumor::compress
