// The columns of one part, as the ADAPT coder learns them: their hits so far, which sign each leans to, and
// the weights that follow (compress/ADAPT.md, chapters 6, 8 and 9).
//
// Hits are handed on to the weights at the ends of some rows only. A few at a time are added one by one (each
// changes its block), many by going through all columns.
//
// Thread: plain value, one owner.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "compress/adapt_cells.h"
#include "compress/adapt_learning.h"

namespace rumor::compress {

class Columns {
 public:
  // hits_max: how many there will be. prior, leaning: what an earlier history says of each column, 256 on the
  // average; null without.
  void begin(std::uint32_t count, std::uint32_t hits_max, const std::uint32_t* prior,
             const std::uint8_t* leaning);

  // Calls use(cells) with the columns as they now weigh. The cells are valid until the next end_row().
  template <class Use>
  bool with_cells(const Use& use) const {
    if (listed_) return use(list_.cells());
    return prior_ == nullptr ? use(cells<false>()) : use(cells<true>());
  }

  // What the innermost loop works with.
  struct Row {
    std::uint8_t* leaning;  // of each column
    std::uint16_t* hits;    // where the columns of the row are put down

    void hit(std::uint32_t column, bool negative) {
      *hits++ = static_cast<std::uint16_t>(column);
      leaning[column] = Leaning::moved(leaning[column], negative);
    }
  };
  Row row() { return {leaning_.data(), fresh_hits_.data() + fresh_}; }

  // After a row with this many hits, all of them put down.
  void end_row(std::uint32_t hits) {
    total_ += hits;
    fresh_ += hits;
    if (fresh_ >= std::max(std::min(total_ >> 2, 8u), std::max(1u, total_ >> 4))) renew();
  }

 private:
  template <bool foretold>
  LearnedCells<foretold> cells() const {
    return {.prior_sums = prior_sums_.data(),
            .ramp = ramp_.data(),
            .blocks = blocks_.view(),
            .hits_before = hits_before_.data(),
            .hits_inside = hits_inside_.data(),
            .count = count_,
            .mean = mean_,
            .all = all_,
            .shape = shape_};
  }

  void renew();
  void learn();
  void add(std::uint32_t column);
  void count_all();
  void weigh();
  void list();

  std::uint32_t count_ = 0;
  std::vector<std::uint8_t> leaning_;
  std::vector<std::uint16_t> hits_, fresh_hits_;
  std::vector<std::uint32_t> hits_before_, hits_inside_, hits_of_, prior_sums_;
  BlockList blocks_;
  ListedWeights list_;
  bool listed_ = false;
  std::array<std::uint32_t, block_cells> ramp_{};
  const std::uint32_t* prior_ = nullptr;
  std::uint32_t total_ = 0, fresh_ = 0, shape_ = 0, all_ = 0, mean_ = 0;
  std::uint64_t squares_ = 0;                       // sum of hits^2
  std::uint64_t prior_squares_ = 0, foretold_ = 0;  // sums of prior^2 and prior * hits
};

}  // namespace rumor::compress
