// The memory of LinkHistory, and how it becomes the priors of a part (compress/ADAPT.md, chapter 9).
//
// Thread: one owner; priors_of() only reads, so several threads may code segments at the same time.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "compress/link/adapt.h"
#include "compress/link/adapt_shape.h"

namespace rumor::compress {

// Hits of each row, or of each column, of one tensor: 256 for each, four fifths of which stay after a
// message; and how their signs lean.
struct Recent {
  static constexpr std::array<std::uint32_t, 6> trusts = {16, 64, 256, 1024, 4096, 65536};

  std::vector<std::uint32_t> hits;
  std::vector<std::uint8_t> leaning;
  std::uint64_t sum = 0;
  // The merit of each trust: how well it would have predicted the messages so far, in bits times 256. It fades too.
  std::array<std::int64_t, trusts.size()> merit{};

  void resize(std::uint32_t count);
  void learn(const std::vector<std::uint32_t>& fresh);
  std::uint32_t trust() const;
};

struct LinkHistory::Impl {
  struct Tensor {
    std::uint32_t offset = 0, size = 0, columns = 1;
    Recent by_row, by_column;  // by_row: nothing where the rows are too many for one set
  };
  std::vector<Tensor> tensors;
  std::vector<std::uint32_t> fresh_rows, fresh_columns;  // scratch of remember()

  // False when nothing is known of this part; then the walk goes without.
  bool priors_of(const Part& part, Priors& priors) const;
};

}  // namespace rumor::compress
