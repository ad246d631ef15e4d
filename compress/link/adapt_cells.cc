#include "compress/link/adapt_cells.h"

#include <bit>

namespace rumor::compress {

// Completes the list and makes its index. Every block writes its number sixteen times, from its first place on; later
// blocks overwrite their part.
void ListedWeights::finish(std::uint32_t count) {
  constexpr std::uint32_t block = ListedCells::block, copies = 16;
  std::uint32_t* sums = sums_.data();
  for (std::uint32_t i = count + 1; i < count + 2 * block; ++i) sums[i] = block_fill;
  const std::uint32_t sum = sums[count];
  const int up_to = std::bit_width(sum) - std::bit_width(count);
  const auto shift = up_to < 0 ? 0 : static_cast<unsigned>(up_to);
  const std::uint32_t size = (sum >> shift) + 2, up = (1u << shift) - 1;
  if (index_.size() < size + copies) index_.resize(size + copies);
  std::uint16_t* index = index_.data();
  std::uint32_t written = 0;  // places that hold something, from the first on
  for (std::uint32_t at = 0; at < count; at += block) {
    const std::uint32_t first = (sums[at] + up) >> shift;
    const std::uint64_t number = (at / block) * std::uint64_t{0x0001000100010001};
    for (; written < first; ++written) index[written] = index[written - 1];
    for (std::uint32_t i = 0; i < copies; i += 4) std::memcpy(index + first + i, &number, 8);
    written = first + copies;
  }
  for (; written < size; ++written) index[written] = index[written - 1];
  cells_ = {.sums = sums, .index = index, .count = count, .mean = sum / count, .index_shift = shift};
}

}  // namespace rumor::compress
