#include "compress/adapt_cells.h"

#include <bit>

namespace rumor::compress {

void Cells::reset(std::uint32_t count) {
  count_ = count;
  mean_ = alike_weight;
  alike_ = true;
}

void Cells::set(const std::uint32_t* weights, std::uint32_t count, bool searched) {
  count_ = count;
  alike_ = false;
  if (sums_.size() < count + 2 * block) sums_.resize(count + 2 * block);
  std::uint32_t sum = 0;
  for (std::uint32_t i = 0; i < count; ++i) {
    sums_[i] = sum;
    sum += weights[i];
  }
  sums_[count] = sum;
  mean_ = sum / count;
  if (!searched) return;
  for (std::uint32_t i = count + 1; i < count + 2 * block; ++i) sums_[i] = ~std::uint32_t{0};
  index();
}

void Cells::index() {
  const std::uint32_t sum = sums_[count_];
  const int shift = std::bit_width(sum) - std::bit_width(count_) + 1;
  index_shift_ = shift < 0 ? 0 : static_cast<unsigned>(shift);
  const std::uint32_t size = (sum >> index_shift_) + 2;
  index_.assign(size, 0);
  for (std::uint32_t at = 0; at < count_; at += block) {
    const std::uint32_t first = (sums_[at] + (1u << index_shift_) - 1) >> index_shift_;
    index_[first] = static_cast<std::uint16_t>(at / block);
  }
  for (std::uint32_t i = 1; i < size; ++i) index_[i] = std::max(index_[i], index_[i - 1]);
}

// Halves the cells until one is left: for slots where the guess was off.
std::uint32_t NextMember::search(std::uint32_t slot, std::uint32_t& from, std::uint32_t& to) const {
  std::uint32_t low = first_, high = end_;
  while (high - low > 1) {
    const std::uint32_t middle = low + (high - low) / 2;
    if (start(middle) <= slot) {
      low = middle;
    } else {
      high = middle;
    }
  }
  from = start(low);
  to = start(low + 1);
  return low;
}

}  // namespace rumor::compress
