#include "compress/link/adapt_columns.h"

namespace rumor::compress {

namespace {

constexpr std::uint32_t hit_weight = 64;

// The amounts that a hit in each place of a block adds to the sums of the block.
constexpr auto after_hit = [] {
  std::array<std::array<std::uint32_t, block_cells>, block_cells> made{};
  for (std::uint32_t at = 0; at < block_cells; ++at) {
    for (std::uint32_t i = at + 1; i < block_cells; ++i) made[at][i] = hit_weight;
  }
  return made;
}();

// The weight of a hit to all sums of a block after place `at`.
inline void add_after(std::uint32_t* sums, std::uint32_t at) {
  const std::uint32_t* more = after_hit[at].data();
  for (std::uint32_t i = 0; i < block_cells; i += 4) {
    const Four sum = four_at(sums + i) + four_at(more + i);
    std::memcpy(sums + i, &sum, sizeof sum);
  }
}

}  // namespace

void Columns::begin(std::uint32_t count, std::uint32_t hits_max, const std::uint32_t* prior,
                    const std::uint8_t* leaning) {
  count_ = count;
  prior_ = prior;
  if (leaning != nullptr) {
    leaning_.assign(leaning, leaning + count);
  } else {
    leaning_.assign(count, Leaning::none);
  }
  if (fresh_hits_.size() < hits_max) fresh_hits_.resize(hits_max);
  total_ = fresh_ = 0;
  due_ = interval(0);
  alike_ = true;
  if (prior != nullptr) renew();
}

// Makes the tables from which weights are computed. They are not needed while all weights are equal.
void Columns::begin_weights() {
  const std::uint32_t blocks = count_ / block_cells + 1;
  hits_.assign(blocks * block_cells, 0);
  hits_inside_.assign(blocks * block_cells, 0);
  hits_before_.assign(blocks, 0);
  hits_of_.assign(blocks, 0);
  blocks_.resize(count_);
  alike_ = listed_ = false;
  squares_ = prior_squares_ = predicted_ = 0;
  if (prior_ == nullptr) return;
  prior_sums_.resize(blocks * block_cells + 1);
  std::uint32_t sum = 0;
  for (std::uint32_t i = 0; i < prior_sums_.size(); ++i) {
    prior_sums_[i] = sum;
    if (i >= count_) continue;
    sum += prior_[i];
    prior_squares_ += std::uint64_t{prior_[i]} * prior_[i];
  }
}

// Compares hits with the expectation. The excess of the mean of squares over that of chance measures the spread of the
// rates around the expectation. A column with h hits gets a rate proportional to (a p + h). Here p is its expected
// rate, and a is the shape of the gamma distribution of the rates around it.
void Columns::renew() {
  if (alike_) begin_weights();
  learn();
  due_ = total_ + interval(total_);
  const std::uint64_t total = total_;
  std::uint64_t even = 0, chance = 0;
  if (prior_ == nullptr) {
    even = total * total / count_;
    chance = 2 * even + total;
  } else {
    const std::uint64_t scaled = std::uint64_t{count_} * 256;
    even = total * (total * prior_squares_ / scaled) / scaled;
    chance = 2 * total * predicted_ / scaled + total;
  }
  const std::uint64_t excess = squares_ + even > chance ? squares_ + even - chance : 0;
  constexpr std::uint64_t trust = 8;
  shape_ =
      static_cast<std::uint32_t>(std::clamp<std::uint64_t>(64 * (even + trust) / (excess + trust), 2, 4096));
  weigh();
}

inline void Columns::add(std::uint32_t column) {
  const std::uint32_t block = column >> block_bits;
  add_after(hits_inside_.data() + (block << block_bits), column % block_cells);
  hits_of_[block] += hit_weight;
}

// Takes in the hits since the last time.
void Columns::learn() {
  listed_ = total_ >= 2 * count_;
  const bool many = fresh_ * 8 > count_;
  for (std::uint32_t i = 0; i < fresh_; ++i) {
    const std::uint32_t column = fresh_hits_[i];
    squares_ += 2 * std::uint32_t{hits_[column]} + 1;
    ++hits_[column];
    if (prior_ != nullptr) predicted_ += prior_[column];
    if (!many && !listed_) add(column);
  }
  if (many && !listed_) count_all();
  fresh_ = 0;
}

void Columns::count_all() {
  std::uint32_t* inside = hits_inside_.data();
  const std::uint16_t* hits = hits_.data();
  for (std::uint32_t& all : hits_of_) {
    std::uint32_t sum = 0;
    for (std::uint32_t i = 0; i < block_cells; ++i) {
      *inside++ = sum;
      sum += hit_weight * *hits++;
    }
    all = sum;
  }
}

// The same weights as a list.
void Columns::list() {
  const std::uint16_t* hits = hits_.data();
  const std::uint64_t shape = shape_;
  if (prior_ == nullptr) {
    list_.set(count_,
              [=](std::uint32_t i) { return static_cast<std::uint32_t>(shape) + hit_weight * hits[i]; });
    return;
  }
  const std::uint32_t* prior = prior_sums_.data();
  list_.set(count_, [=](std::uint32_t i) {
    const std::uint64_t spread = (shape * prior[i + 1] >> 8) - (shape * prior[i] >> 8);
    return static_cast<std::uint32_t>(spread) + 1 + hit_weight * hits[i];
  });
}

// The sums at the beginnings of the blocks.
void Columns::weigh() {
  if (listed_) {
    list();
    return;
  }
  for (std::uint32_t i = 0; i < block_cells; ++i) ramp_[i] = i * shape_;
  const auto blocks = static_cast<std::uint32_t>(hits_of_.size());
  const std::uint32_t* of = hits_of_.data();
  std::uint32_t* before = hits_before_.data();
  std::uint32_t sum = 0;
  for (std::uint32_t i = 0; i < blocks; ++i) {
    before[i] = sum;
    sum += of[i];
  }
  std::uint32_t* starts = blocks_.starts();
  if (prior_ == nullptr) {
    const std::uint32_t step = shape_ * block_cells;
    Four spread{0, static_cast<std::int32_t>(step), static_cast<std::int32_t>(2 * step),
                static_cast<std::int32_t>(3 * step)};
    const Four four_steps = four_alike(4 * step);
    std::uint32_t i = 0;
    for (; i + 4 <= blocks_.blocks(); i += 4) {
      const Four sums = spread + four_at(before + i);
      std::memcpy(starts + i, &sums, sizeof sums);
      spread += four_steps;
    }
    for (; i < blocks_.blocks(); ++i) starts[i] = i * step + before[i];
    all_ = cells<false>().before(count_);
  } else {
    const LearnedCells<true> now = cells<true>();
    for (std::uint32_t i = 0; i < blocks_.blocks(); ++i) starts[i] = now.spread(i << block_bits) + before[i];
    all_ = now.before(count_);
  }
  blocks_.group();
  mean_ = all_ / count_;
}

}  // namespace rumor::compress
