// The columns of one part, as the ADAPT coder learns them: their hits so far, which sign each leans to, and
// the weights that follow (compress/ADAPT.md, chapters 6, 8 and 9).
//
// Hits are handed on to the weights from time to time only. A few at a time are added one by one (each
// changes its block), many by going through all columns.
//
// Thread: plain value, one owner.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "compress/link/adapt_cells.h"
#include "compress/link/adapt_learning.h"

namespace rumor::compress {

class Columns {
 public:
  // hits_max: the number of hits to come. prior, leaning: predictions of a history for each column, 256 on average;
  // null without a history.
  void begin(std::uint32_t count, std::uint32_t hits_max, const std::uint32_t* prior,
             const std::uint8_t* leaning);

  // Calls use(cells) with the columns as they now weigh. The cells are valid until the next grow().
  template <class Use>
  bool with_cells(const Use& use) const {
    if (alike_) return use(AlikeCells{.count = count_});
    if (listed_) return use(list_.cells());
    return prior_ == nullptr ? use(cells<false>()) : use(cells<true>());
  }

  // The data of the innermost loop.
  struct Row {
    std::uint8_t* leaning;  // of each column
    std::uint16_t* hits;    // where the columns of the entries are put down

    void hit(std::uint32_t column, std::uint32_t minus) {
      *hits++ = static_cast<std::uint16_t>(column);
      leaning[column] = Leaning::moved(leaning[column], minus);
    }
  };
  Row row() { return {leaning_.data(), fresh_hits_.data() + fresh_}; }

  // How many more entries leave the weights as they are.
  std::uint32_t until_due() const { return due_ - total_; }

  // After this many entries, all of them put down. Requires: that the weights were not due before the last
  // step of these.
  void grow(std::uint32_t entries) {
    total_ += entries;
    fresh_ += entries;
    if (total_ >= due_) renew();
  }

 private:
  template <bool predicted>
  LearnedCells<predicted> cells() const {
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

  // The number of further entries for which weights made at `total` entries hold.
  static std::uint32_t interval(std::uint32_t total) { return std::max(64u, total >> 4); }

  void begin_weights();
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
  bool alike_ = true, listed_ = false;
  std::array<std::uint32_t, block_cells> ramp_{};
  const std::uint32_t* prior_ = nullptr;
  std::uint32_t total_ = 0, fresh_ = 0, due_ = 0, shape_ = 0, all_ = 0, mean_ = 0;
  std::uint64_t squares_ = 0;                       // sum of hits^2
  std::uint64_t prior_squares_ = 0, predicted_ = 0;  // sums of prior^2 and prior * hits
};

}  // namespace rumor::compress
