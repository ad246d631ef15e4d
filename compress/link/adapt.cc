#include "compress/link/adapt.h"

#include "compress/link/adapt_coder.h"
#include "compress/link/adapt_history.h"
#include "compress/link/adapt_walk.h"
#include "runtime/base/check.h"

namespace rumor::compress {

namespace {

std::size_t entries_of(std::span<const Part> parts) {
  std::size_t entries = 0;
  for (const Part& part : parts) entries += part.count;
  return entries;
}

// Records the events of a segment.
class Recorder {
 public:
  static constexpr bool searches = false;

  // Loops work on the recorder itself.
  using Local = Recorder&;
  void take_back(const Recorder&) {}

  Recorder(std::span<const std::uint32_t> positions, std::span<const std::uint8_t> negative,
           std::size_t parts)
      : positions_(positions.data()), negative_(negative.data()), events_(6 * positions.size() + 3 * parts) {
    columns_.reserve(positions.size());
    runs_.reserve(positions.size());
  }

  void write(Bytes& out) const { events_.write(out); }

  void begin(const Shape& shape) {
    runs_.clear();
    columns_.clear();
    run_ = 0;
    std::uint64_t row_end = 0;
    for (std::uint32_t i = 0; i < shape.count; ++i) {
      const std::uint32_t position = positions_[i];
      if (position >= row_end) {
        const std::uint32_t row = position / shape.columns;
        runs_.push_back({row - shape.first_row, i});
        row_end = (std::uint64_t{row} + 1) * shape.columns;
      }
      columns_.push_back(position - static_cast<std::uint32_t>(row_end - shape.columns));
    }
  }
  void end(const Shape& shape) {
    positions_ += shape.count;
    negative_ += shape.count;
  }

  std::uint32_t rows_hit() const { return static_cast<std::uint32_t>(runs_.size()); }
  std::uint32_t row(std::uint32_t j) const { return runs_[j].row; }
  std::uint32_t hits(std::uint32_t j) const {
    return (j + 1 < runs_.size() ? runs_[j + 1].begin : static_cast<std::uint32_t>(columns_.size())) -
           runs_[j].begin;
  }
  std::uint32_t empty_from(std::uint32_t row) {
    for (; run_ < runs_.size() && runs_[run_].row <= row; ++run_) row += runs_[run_].row == row ? 1 : 0;
    return row;
  }
  std::uint32_t column(std::uint32_t i) const { return columns_[i]; }
  std::uint32_t minus(std::uint32_t i) const { return sign_mask(negative_[i] != 0); }
  void put(std::uint32_t, std::uint32_t, std::uint32_t) {}

  bool part() { return true; }
  bool join() {
    events_.join();
    return true;
  }

  bool number(Lane lane, std::uint32_t value, unsigned bits) {
    events_.add(lane, value << (scale_bits - bits), 1u << (scale_bits - bits));
    return true;
  }

  template <class Next>
  bool member(Lane lane, const Next& next, std::uint32_t cell) {
    const std::uint32_t from = next.start(cell);
    events_.add(lane, from, next.start(cell + 1) - from);
    return true;
  }

  template <class Next, class Context>
  bool entry(Lane lane, const Next& next, const Signs& signs, const Context& context, std::uint32_t cell,
             std::uint32_t minus) {
    const std::uint32_t from = next.start(cell);
    const std::uint32_t size = next.start(cell + 1) - from;
    add_signed(lane, from, size, signs.share(context(cell), size), minus);
    return true;
  }

  template <class Next, class Context, class OtherNext, class OtherContext>
  bool entries(const Next& near, const Context& context, std::uint32_t cell, std::uint32_t minus,
               const OtherNext& far, const OtherContext& other_context, std::uint32_t other_cell,
               std::uint32_t other_minus, const Signs& signs) {
    return entry(Lane::near, near, signs, context, cell, minus) &&
           entry(Lane::far, far, signs, other_context, other_cell, other_minus);
  }

  bool sign(Lane lane, const Signs& signs, std::uint32_t context, std::uint32_t minus) {
    add_signed(lane, 0, scale, signs.share(context, scale), minus);
    return true;
  }

  template <class Next>
  bool last_entry(const Next& next, std::uint32_t cell, std::uint32_t minus) {
    events_.end(2 * (cell - next.first()) + (minus & 1));
    return true;
  }
  bool last_sign(std::uint32_t minus) {
    events_.end(minus & 1);
    return true;
  }

  bool symbol(Lane lane, Counts& counts, std::uint32_t context, std::uint32_t symbol) {
    const std::uint32_t from = counts.start(context, symbol);
    constexpr unsigned shift = scale_bits - Counts::symbol_bits;
    events_.add(lane, from << shift, (counts.start(context, symbol + 1) - from) << shift);
    counts.learn(context, symbol);
    return true;
  }

 private:
  struct Run {
    std::uint32_t row, begin;
  };

  // share: what of the interval belongs to minus.
  void add_signed(Lane lane, std::uint32_t from, std::uint32_t size, std::uint32_t share,
                  std::uint32_t minus) {
    events_.add(lane, from + (share & ~minus), ((size - share) & ~minus) + (share & minus));
  }

  const std::uint32_t* positions_;
  const std::uint8_t* negative_;
  EventList events_;
  std::vector<Run> runs_;
  std::vector<std::uint32_t> columns_;
  std::size_t run_ = 0;
};

// Reads the events of a segment.
class Player {
 public:
  static constexpr bool searches = true;

  // Loops work on a copy, which can stay in registers.
  using Local = Player;
  void take_back(const Player& local) { *this = local; }

  // body: followed by StateReader::slack more bytes. The reader writes to it.
  Player(std::uint8_t* body, std::size_t size, std::uint32_t* positions, std::uint8_t* negative)
      : state_(body, size), positions_(positions), negative_(negative) {}

  bool valid() const { return state_.valid(); }
  bool done() const { return done_; }

  void begin(const Shape&) {}
  void end(const Shape& shape) {
    positions_ += shape.count;
    negative_ += shape.count;
  }
  std::uint32_t rows_hit() const { return 0; }
  std::uint32_t row(std::uint32_t) const { return 0; }
  std::uint32_t hits(std::uint32_t) const { return 1; }
  std::uint32_t empty_from(std::uint32_t) const { return 0; }
  std::uint32_t column(std::uint32_t) const { return 0; }
  std::uint32_t minus(std::uint32_t) const { return 0; }
  void put(std::uint32_t i, std::uint32_t position, std::uint32_t minus) {
    positions_[i] = position;
    negative_[i] = static_cast<std::uint8_t>(minus & 1);
  }

  bool part() { return state_.part(); }
  bool join() { return state_.join(); }

  bool number(Lane lane, std::uint32_t& value, unsigned bits) {
    const std::uint32_t slot = state_.slot(lane), size = 1u << (scale_bits - bits);
    value = slot >> (scale_bits - bits);
    state_.take(lane, slot & (size - 1), size);
    return true;
  }

  template <class Next>
  [[gnu::always_inline]] bool member(Lane lane, const Next& next, std::uint32_t& cell) {
    const FoundCell found = next.find(state_.slot(lane));
    cell = found.cell;
    state_.take(lane, found.inside, found.size);
    return true;
  }

  template <class Next, class Context>
  [[gnu::always_inline]] bool entry(Lane lane, const Next& next, const Signs& signs, const Context& context,
                                    std::uint32_t& cell, std::uint32_t& minus) {
    const FoundCell found = next.find(state_.slot(lane));
    cell = found.cell;
    minus = take_signed(lane, found.inside, found.size, signs.share(context(cell), found.size));
    return true;
  }

  template <class Next, class Context, class OtherNext, class OtherContext>
  [[gnu::always_inline]] bool entries(const Next& near, const Context& context, std::uint32_t& cell,
                                      std::uint32_t& minus, const OtherNext& far,
                                      const OtherContext& other_context, std::uint32_t& other_cell,
                                      std::uint32_t& other_minus, const Signs& signs) {
    FoundCell found, other;
    find_both(near, state_.slot(Lane::near), found, far, state_.slot(Lane::far), other);
    cell = found.cell, other_cell = other.cell;
    const std::uint32_t share = signs.share(context(cell), found.size);
    const std::uint32_t other_share = signs.share(other_context(other_cell), other.size);
    minus = take_signed(Lane::near, found.inside, found.size, share);
    other_minus = take_signed(Lane::far, other.inside, other.size, other_share);
    return true;
  }

  bool sign(Lane lane, const Signs& signs, std::uint32_t context, std::uint32_t& minus) {
    minus = take_signed(lane, state_.slot(lane), scale, signs.share(context, scale));
    return true;
  }

  template <class Next>
  bool last_entry(const Next& next, std::uint32_t& cell, std::uint32_t& minus) {
    std::uint32_t number = 0;
    done_ = state_.end(2 * (next.end() - next.first()), number);
    cell = next.first() + number / 2;
    minus = 0 - number % 2;
    return done_;
  }
  bool last_sign(std::uint32_t& minus) {
    std::uint32_t number = 0;
    done_ = state_.end(2, number);
    minus = 0 - number;
    return done_;
  }

  bool symbol(Lane lane, Counts& counts, std::uint32_t context, std::uint32_t& symbol) {
    constexpr unsigned shift = scale_bits - Counts::symbol_bits;
    const std::uint32_t slot = state_.slot(lane);
    symbol = counts.find(context, slot >> shift);
    const std::uint32_t from = counts.start(context, symbol);
    state_.take(lane, slot - (from << shift), (counts.start(context, symbol + 1) - from) << shift);
    counts.learn(context, symbol);
    return true;
  }

 private:
  // share: what of the interval belongs to minus.
  [[gnu::always_inline]] std::uint32_t take_signed(Lane lane, std::uint32_t inside, std::uint32_t size,
                                                   std::uint32_t share) {
    const std::uint32_t minus = sign_mask(inside < share);
    state_.take(lane, inside - (share & ~minus), ((size - share) & ~minus) + (share & minus));
    return minus;
  }

  StateReader state_;
  std::uint32_t* positions_;
  std::uint8_t* negative_;
  bool done_ = false;
};

template <class Io>
bool walk_parts(AdaptWalk<Io>& walk, std::span<const Part> parts, const LinkHistory::Impl* history) {
  if (!walk.begin()) return false;
  Priors priors;
  for (const Part& part : parts) {
    const bool known = history != nullptr && history->priors_of(part, priors);
    if (!walk.part(part, known ? &priors : nullptr)) return false;
  }
  return true;
}

}  // namespace

// Lets the coder into the history without opening it to everybody.
class AdaptModel {
 public:
  static const LinkHistory::Impl* of(const LinkHistory* history) {
    return history == nullptr ? nullptr : history->impl_.get();
  }
};

void adapt_encode(std::span<const Part> parts, std::span<const std::uint32_t> positions,
                  std::span<const std::uint8_t> negative, const LinkHistory* history, Bytes& out) {
  const std::size_t entries = entries_of(parts);
  RUMOR_CHECK(entries == positions.size() && entries == negative.size());
  if (entries == 0) return;
  Recorder recorder(positions, negative, parts.size());
  AdaptWalk<Recorder> walk(recorder, static_cast<std::uint32_t>(entries));
  RUMOR_CHECK(walk_parts(walk, parts, AdaptModel::of(history)));
  recorder.write(out);
}

bool adapt_decode(std::span<const Part> parts, BytesView body, const LinkHistory* history,
                  std::uint32_t* positions, std::uint8_t* negative) {
  const std::size_t entries = entries_of(parts);
  if (entries == 0) return body.empty();
  Bytes copy(body.size() + StateReader::slack);
  std::copy(body.begin(), body.end(), copy.begin());
  Player player(copy.data(), body.size(), positions, negative);
  if (!player.valid()) return false;
  AdaptWalk<Player> walk(player, static_cast<std::uint32_t>(entries));
  if (!walk_parts(walk, parts, AdaptModel::of(history)) || !player.done()) return false;
  for (const Part& part : parts) {
    if (positions[0] < part.begin || positions[part.count - 1] >= part.end) return false;
    positions += part.count;
  }
  return true;
}

}  // namespace rumor::compress
