#include "compress/adapt.h"

#include "compress/adapt_coder.h"
#include "compress/adapt_history.h"
#include "compress/adapt_walk.h"
#include "runtime/base/check.h"

namespace rumor::compress {

namespace {

std::size_t entries_of(std::span<const Part> parts) {
  std::size_t entries = 0;
  for (const Part& part : parts) entries += part.count;
  return entries;
}

// Writes down what happens.
class Recorder {
 public:
  static constexpr bool searches = false;

  Recorder(std::span<const std::uint32_t> positions, std::span<const std::uint8_t> negative,
           std::size_t parts)
      : positions_(positions.data()), negative_(negative.data()), events_(6 * positions.size() + 3 * parts) {
    columns_.reserve(positions.size());
    runs_.reserve(positions.size());
  }

  // What the innermost loop works with: the recorder itself.
  class Close {
   public:
    explicit Close(Recorder& io) : io_(io) {}
    void back_to(Recorder&) {}
    bool join() { return io_.join(); }
    std::uint32_t column() const { return io_.column(); }
    bool negative() const { return io_.negative(); }
    void put(std::uint32_t position, bool negative) { io_.put(position, negative); }
    template <class Next, class Context>
    bool entry(const Next& next, Signs& signs, const Context& context, std::uint32_t cell, bool negative,
               bool last) {
      return io_.entry(next, signs, context, cell, negative, last);
    }

   private:
    Recorder& io_;
  };

  void write(Bytes& out) const { events_.write(out); }

  void begin(const Shape& shape) {
    runs_.clear();
    columns_.clear();
    at_ = run_ = 0;
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
    positions_ += shape.count;
    signs_ = negative_;
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
  std::uint32_t column() const { return columns_[at_]; }
  bool negative() const { return signs_[at_] != 0; }
  void put(std::uint32_t, bool) { ++at_; }

  bool part() { return true; }
  bool join() {
    events_.join();
    return true;
  }

  bool number(std::uint32_t value, unsigned bits) {
    events_.add(Lane::rows, value << (scale_bits - bits), 1u << (scale_bits - bits));
    return true;
  }

  template <class Next>
  bool member(const Next& next, std::uint32_t cell) {
    const std::uint32_t from = next.start(cell);
    events_.add(Lane::rows, from, next.start(cell + 1) - from);
    return true;
  }

  template <class Next, class Context>
  bool entry(const Next& next, Signs& signs, const Context& context, std::uint32_t cell, bool negative,
             bool last) {
    if (last) {
      events_.end(2 * (cell - next.first()) + (negative ? 1 : 0));
      return true;
    }
    const std::uint32_t from = next.start(cell);
    add_signed(from, next.start(cell + 1) - from, signs, context(cell), negative);
    return true;
  }

  bool sign(Signs& signs, std::uint32_t context, bool negative, bool last) {
    if (last) {
      events_.end(negative ? 1 : 0);
    } else {
      add_signed(0, scale, signs, context, negative);
    }
    return true;
  }

  bool symbol(Counts& counts, std::uint32_t context, std::uint32_t symbol) {
    const std::uint32_t from = counts.start(context, symbol);
    constexpr unsigned shift = scale_bits - Counts::symbol_bits;
    events_.add(Lane::rows, from << shift, (counts.start(context, symbol + 1) - from) << shift);
    counts.learn(context, symbol);
    return true;
  }

 private:
  struct Run {
    std::uint32_t row, begin;
  };

  void add_signed(std::uint32_t from, std::uint32_t size, Signs& signs, std::uint32_t context,
                  bool negative) {
    const std::uint32_t minus = signs.share(context, size);
    const std::uint32_t plus = negative ? 0 : ~0u;
    events_.add(Lane::entries, from + (minus & plus), (minus ^ plus) - plus + (size & plus));
    signs.learn(context, negative);
  }

  const std::uint32_t* positions_;
  const std::uint8_t* negative_;
  const std::uint8_t* signs_ = nullptr;
  EventList events_;
  std::vector<Run> runs_;
  std::vector<std::uint32_t> columns_;
  std::size_t at_ = 0, run_ = 0;
};

// Finds out what happened.
class Player {
 public:
  static constexpr bool searches = true;

  // What the innermost loop works with: a copy.
  class Close;

  // body: StateReader::slack more bytes stand after it. It is written to.
  Player(std::uint8_t* body, std::size_t size, std::uint32_t* positions, std::uint8_t* negative)
      : state_(body, size), positions_(positions), negative_(negative) {}

  bool valid() const { return state_.valid(); }
  bool done() const { return done_; }

  void begin(const Shape&) {}
  std::uint32_t rows_hit() const { return 0; }
  std::uint32_t row(std::uint32_t) const { return 0; }
  std::uint32_t hits(std::uint32_t) const { return 1; }
  std::uint32_t empty_from(std::uint32_t) const { return 0; }
  std::uint32_t column() const { return 0; }
  bool negative() const { return false; }
  void put(std::uint32_t position, bool negative) {
    *positions_++ = position;
    *negative_++ = negative ? 1 : 0;
  }

  bool part() { return state_.part(); }
  bool join() { return state_.join(); }

  bool number(std::uint32_t& value, unsigned bits) {
    Chain at = state_.chain(Lane::rows);
    value = at.slot() >> (scale_bits - bits);
    at.take(value << (scale_bits - bits), 1u << (scale_bits - bits));
    state_.put_back(Lane::rows, at);
    return true;
  }

  template <class Next>
  bool member(const Next& next, std::uint32_t& cell) {
    Chain at = state_.chain(Lane::rows);
    const FoundCell found = next.find(at.slot());
    cell = found.cell;
    at.take(found.from, found.to - found.from);
    state_.put_back(Lane::rows, at);
    return true;
  }

  template <class Next, class Context>
  bool entry(const Next& next, Signs& signs, const Context& context, std::uint32_t& cell, bool& negative,
             bool last);

  bool sign(Signs& signs, std::uint32_t context, bool& negative, bool last) {
    if (last) {
      std::uint32_t number = 0;
      done_ = state_.end(2, number);
      negative = number != 0;
      return done_;
    }
    Chain at = state_.chain(Lane::entries);
    negative = take_signed(at, 0, scale, signs, context);
    state_.put_back(Lane::entries, at);
    return true;
  }

  bool symbol(Counts& counts, std::uint32_t context, std::uint32_t& symbol) {
    constexpr unsigned shift = scale_bits - Counts::symbol_bits;
    Chain at = state_.chain(Lane::rows);
    symbol = counts.find(context, at.slot() >> shift);
    const std::uint32_t from = counts.start(context, symbol);
    at.take(from << shift, (counts.start(context, symbol + 1) - from) << shift);
    state_.put_back(Lane::rows, at);
    counts.learn(context, symbol);
    return true;
  }

 private:
  static bool take_signed(Chain& at, std::uint32_t from, std::uint32_t size, Signs& signs,
                          std::uint32_t context) {
    const std::uint32_t minus = signs.share(context, size);
    const bool negative = at.slot() - from < minus;
    // Without a branch: a sign is as good as random.
    const std::uint32_t plus = negative ? 0 : ~0u;
    at.take(from + (minus & plus), (minus ^ plus) - plus + (size & plus));
    signs.learn(context, negative);
    return negative;
  }

  StateReader state_;
  std::uint32_t* positions_;
  std::uint8_t* negative_;
  bool done_ = false;
};

class Player::Close {
 public:
  explicit Close(Player& io)
      : io_(io), at_(io.state_.chain(Lane::entries)), positions_(io.positions_), negative_(io.negative_) {}
  void back_to(Player& io) const {
    io.state_.put_back(Lane::entries, at_);
    io.positions_ = positions_;
    io.negative_ = negative_;
  }

  bool join() {
    back_to(io_);
    const bool sound = io_.join();
    at_ = io_.state_.chain(Lane::entries);
    return sound;
  }
  std::uint32_t column() const { return 0; }
  bool negative() const { return false; }
  void put(std::uint32_t position, bool negative) {
    *positions_++ = position;
    *negative_++ = negative ? 1 : 0;
  }

  template <class Next, class Context>
  bool entry(const Next& next, Signs& signs, const Context& context, std::uint32_t& cell, bool& negative,
             bool last) {
    if (last) [[unlikely]] {
      back_to(io_);
      std::uint32_t number = 0;
      io_.done_ = io_.state_.end(2 * (next.end() - next.first()), number);
      cell = next.first() + number / 2;
      negative = number % 2 != 0;
      return io_.done_;
    }
    const FoundCell found = next.find(at_.slot());
    cell = found.cell;
    negative = take_signed(at_, found.from, found.to - found.from, signs, context(cell));
    return true;
  }

 private:
  Player& io_;
  Chain at_;
  std::uint32_t* positions_;
  std::uint8_t* negative_;
};

template <class Next, class Context>
bool Player::entry(const Next& next, Signs& signs, const Context& context, std::uint32_t& cell,
                   bool& negative, bool last) {
  Close close(*this);
  const bool sound = close.entry(next, signs, context, cell, negative, last);
  close.back_to(*this);
  return sound;
}

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
