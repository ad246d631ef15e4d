#include "compress/adapt_cells.h"

#include <bit>
#include <cstring>

namespace rumor::compress {

void Cells::reset(std::uint32_t count) {
  view_ = CellView{};
  view_.count = count;
}

void Cells::set(const std::uint32_t* weights, std::uint32_t count, bool searched) {
  constexpr std::uint32_t block = CellView::block;
  if (sums_.size() < count + 2 * block) sums_.resize(count + 2 * block);
  std::uint32_t* sums = sums_.data();
  std::uint32_t sum = 0;
  for (std::uint32_t i = 0; i < count; ++i) {
    sums[i] = sum;
    sum += weights[i];
  }
  view_.count = count;
  view_.sums = sums;
  view_.mean = sum / count;
  for (std::uint32_t i = count; i < count + 2 * block; ++i) sums[i] = i == count ? sum : ~std::uint32_t{0};
  if (searched) index();
}

// Every block writes its number sixteen times, from its first place on; later blocks overwrite what is
// theirs.
void Cells::index() {
  constexpr std::uint32_t block = CellView::block, copies = 16;
  const std::uint32_t sum = view_.sums[view_.count];
  const int shift = std::bit_width(sum) - std::bit_width(view_.count);
  view_.index_shift = shift < 0 ? 0 : static_cast<unsigned>(shift);
  const std::uint32_t size = (sum >> view_.index_shift) + 2;
  if (index_.size() < size + copies) index_.resize(size + copies);
  view_.index = index_.data();
  const std::uint32_t up = (1u << view_.index_shift) - 1;
  std::uint16_t* index = index_.data();
  std::uint32_t written = 0;  // places that hold something, from the first on
  for (std::uint32_t at = 0; at < view_.count; at += block) {
    const std::uint32_t first = (view_.sums[at] + up) >> view_.index_shift;
    const std::uint64_t number = (at / block) * std::uint64_t{0x0001000100010001};
    for (; written < first; ++written) index[written] = index[written - 1];
    for (std::uint32_t i = 0; i < copies; i += 4) std::memcpy(index + first + i, &number, 8);
    written = first + copies;
  }
  for (; written < size; ++written) index[written] = index[written - 1];
}

// Halves the cells until one is left: for slots where the guess was off.
NextMember::Found NextMember::search(const NextMember next, std::uint32_t slot) {
  std::uint32_t low = next.first_, high = next.end_;
  while (high - low > 1) {
    const std::uint32_t middle = low + (high - low) / 2;
    if (next.start(middle) <= slot) {
      low = middle;
    } else {
      high = middle;
    }
  }
  return {low, next.start(low), next.start(low + 1)};
}

}  // namespace rumor::compress
