#include "tests/format/slow_adapt.h"

#include <algorithm>
#include <utility>

#include "tests/format/slow_adapt_state.h"

namespace rumor::slow {
namespace {

// Chapter 4.
Number height(Number n, Number i) {
  Number q = Number{1} << 32;
  if (n > 32) {
    for (Number k = 0; k < i; ++k) q = (q * 3673680207) >> 32;
  } else if (i != 0) {
    const Number f = (Number{1} << 32) - ((i * std::min<Number>(n, 10)) << 32) / (64 * n);
    for (Number k = 0; k < n; ++k) q = (q * f) >> 32;
  }
  return ((scale - 65536) * ((Number{1} << 32) - q)) >> 32;
}

Number curve(Number n, Number steps) {
  const Number i = steps >> 18;
  if (i == 64) return height(n, 64);
  return height(n, i) + (((height(n, i + 1) - height(n, i)) * (steps % (1 << 18))) >> 18);
}

struct Member {
  const Numbers& weights;
  Number first, n, end, base = 0, pace = 0;
  Numbers before;  // W

  bool line = false;

  Member(const Numbers& cells, Number from, Number left, Number to, Number others, bool straight = false)
      : weights(cells), first(from), n(left), end(to), before(cells.size() + 1, 0) {
    for (std::size_t c = 0; c < cells.size(); ++c) before[c + 1] = before[c] + cells[c];
    const Number rest = before.back() - before[first];
    const Number extent = std::max(rest / 2, rest > others ? rest - others : 0);
    if (straight) {
      line = true;
      pace = ((scale - 2 * (end - first)) << 13) / rest;
      return;
    }
    pace = std::max<Number>(n, 10) * 109951162777 / extent;
  }
  static Member next(const Numbers& cells, Number first, Number n, bool alike) {
    reject_if(first + n > cells.size());
    Number sum = 0;
    for (Number weight : cells) sum += weight;
    return Member(cells, first, n, cells.size() - n + 1, ((n - 1) * (sum / cells.size())) / 2,
                  alike && n == 1);
  }
  Number start(Number c) const {
    if (c == end) return scale;
    if (line) return (((before[c] - before[first]) * pace) >> 13) + 2 * (c - first);
    const Number steps = std::min<Number>(1 << 24, ((before[c] - before[first]) * pace) >> 16);
    return curve(n, steps) + 2 * (c - first);
  }
  Number find(Number slot) const {
    Number low = first, high = end;
    while (high - low > 1) {
      const Number middle = (low + high) / 2;
      (start(middle) <= slot ? low : high) = middle;
    }
    return low;
  }
};

// Chapter 6.
struct LearnedColumns {
  Numbers weights, hits, leaning, prior;
  Number total = 0, due = 64;
  bool alike = true;

  LearnedColumns(Number columns, Numbers known)
      : weights(columns, 64), hits(columns, 0), leaning(columns, 3) {
    prior = std::move(known);
    if (!prior.empty()) make();
  }
  void make() {
    Number squares = 0, prior_squares = 0, predicted = 0;
    for (std::size_t c = 0; c < hits.size(); ++c) {
      squares += hits[c] * hits[c];
      if (prior.empty()) continue;
      prior_squares += prior[c] * prior[c];
      predicted += prior[c] * hits[c];
    }
    const Number C = hits.size(), trust = 8;
    Number even = total * total / C, chance = 2 * even + total;
    if (!prior.empty()) {
      even = total * (total * prior_squares / (256 * C)) / (256 * C);
      chance = 2 * total * predicted / (256 * C) + total;
    }
    const Number excess = squares + even > chance ? squares + even - chance : 0;
    const Number shape = std::clamp<Number>(64 * (even + trust) / (excess + trust), 2, 4096);
    Number known = 0;
    for (std::size_t c = 0; c < hits.size(); ++c) {
      weights[c] = shape + 64 * hits[c];
      if (prior.empty()) continue;
      weights[c] = 1 + ((shape * (known + prior[c])) >> 8) - ((shape * known) >> 8) + 64 * hits[c];
      known += prior[c];
    }
    alike = false;
    due = total + std::max<Number>(64, total >> 4);
  }
  void end_step(Number n) {
    total += n;
    if (total >= due) make();
  }
};

// Chapters 7 and 8.
struct Learned {
  std::array<std::array<std::int64_t, 17>, 24> t{};
  std::array<Number, 24> used{};
  std::array<Number, 50> p{}, used_signs{};
  static constexpr std::array<Number, 16> begins = {0, 1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 24, 32, 48, 64, 96};

  Learned() {
    constexpr std::array<Number, 12> a = {3120,  9850,  16990, 24580, 32050, 38860,
                                          44800, 49790, 53790, 56890, 54000, 57000};
    const Number w = (1 << 20) - 2048;
    for (std::size_t context = 0; context < 24; ++context) {
      Number k = w, v = 0;
      for (Number s = 0; s < 16; ++s) {
        for (; v < begins[s]; ++v) k = (k * a[context % 12]) >> 16;
        t[context][s] = static_cast<std::int64_t>(w - k + 128 * s);
      }
      t[context][16] = 1 << 20;
    }
    for (Number row = 0; row < 7; ++row)
      for (Number column = 0; column < 7; ++column)
        p[7 * row + column] = (1 << 21) + 196608 * 6 - 196608 * (row + column);
    p[49] = 1 << 21;
  }
  void saw_symbol(Number context, std::int64_t s) {
    const Number r = bits(std::min<Number>(used[context]++, 120) + 8) - 1;
    for (std::int64_t i = 1; i < 16; ++i) {
      const std::int64_t z = i <= s ? 128 * i : (1 << 20) - 128 * (16 - i);
      std::int64_t& value = t[context][static_cast<std::size_t>(i)];
      const std::int64_t difference = z - value, divisor = std::int64_t{1} << r;
      value += difference >= 0 ? difference / divisor : -((-difference + divisor - 1) / divisor);
    }
  }
  // The sign inside [start, start + size).
  bool sign(State& state, Number context, Number start, Number size) const {
    const Number minus = 1 + (((size - 2) * p[context]) >> 22);
    const bool is_minus = state.slot() < start + minus;
    if (is_minus) {
      state.pass(start, minus);
    } else {
      state.pass(start + minus, size - minus);
    }
    return is_minus;
  }
  void saw_sign(Number context, bool is_minus) {
    const Number d = 65536 / (std::min<Number>(used_signs[context]++, 251) + 5);
    if (is_minus) {
      p[context] += (((Number{1} << 22) - 1 - p[context]) * d) >> 16;
    } else {
      p[context] -= (p[context] * d) >> 16;
    }
  }
};

Number moved(Number leaning, bool minus) {
  return minus ? (leaning > 0 ? leaning - 1 : 0) : std::min<Number>(leaning + 1, 6);
}

struct SegmentReader {
  States states;
  Learned learned{};
  Number entries_left = 0;
  std::vector<AdaptEntry> out{};

  struct Signed {
    Number cell, context;
    bool minus;
  };
  // An entry whose sign shares the event of its cell, not yet learned from. leanings: of the row, and of all
  // cells; null for C = 1.
  Signed entry(State& state, const Member& member, Number row_leaning, const Numbers* leanings) {
    if (--entries_left == 0) {
      const Number plain = state.plain(2 * (member.end - member.first));
      return {member.first + plain / 2, 0, plain % 2 == 1};
    }
    const Number cell = member.find(state.slot()), start = member.start(cell);
    const Number context = leanings == nullptr ? 49 : 7 * row_leaning + (*leanings)[cell];
    return {cell, context, learned.sign(state, context, start, member.start(cell + 1) - start)};
  }
  bool lone_sign() {
    if (--entries_left == 0) return states.near.plain(2) == 1;
    const bool minus = learned.sign(states.near, 49, 0, scale);
    learned.saw_sign(49, minus);
    return minus;
  }
};

// Chapters 5 to 7, and of chapter 9 what concerns one part.
struct PartReader {
  SegmentReader& segment;
  const AdaptPart& part;
  Number C, first, R, G = 0, K = 0, cursor = 0, known = 0, absent_left = 0;
  bool by_absence = false;
  Numbers row_weights, row_prior, column_prior, row_leaning, column_leaning;
  Number row_mean = 1;

  PartReader(SegmentReader& whole, const AdaptPart& given)
      : segment(whole),
        part(given),
        C(given.columns > cells_max ? 1024 : given.columns),
        first(given.begin / C),
        R((given.end - 1) / C - first + 1) {
    while ((R - 1) >> G >= cells_max) ++G;
  }

  void use(const AdaptHistory* history) {
    if (history == nullptr || part.tensor >= history->tensors.size()) return;
    const AdaptHistory::Tensor& tensor = history->tensors[part.tensor];
    Number sum = 0;
    for (Number y : tensor.by_column.x) sum += y;
    if (part.columns != tensor.given_columns || part.end > tensor.size || sum == 0) return;
    column_prior = tensor.by_column.priors(0, C);
    column_leaning = tensor.by_column.leanings(0, C);
    if (tensor.rows.x.empty() || G > 0) return;
    row_prior = tensor.rows.priors(first, R);
    row_leaning = tensor.rows.leanings(first, R);
  }

  void weigh_rows() {
    row_weights.assign(G == 0 ? R : 0, 64);
    if (row_prior.empty()) return;
    Number weighted = 0, sum = 0;
    for (std::size_t r = 0; r < R; ++r) {
      const Number rate = row_prior[r] * part.count, kind = by_absence ? 256 * R : rate;
      row_weights[r] = std::max<Number>(1, (kind << (30 - bits(R))) / (256 * R + rate));
      weighted += row_weights[r] * row_prior[r];
      sum += row_weights[r];
    }
    row_mean = std::max<Number>(1, weighted / sum);
  }

  Number member(const Member& set) {
    State& state = segment.states.second();
    const Number cell = set.find(state.slot()), start = set.start(cell);
    state.pass(start, set.start(cell + 1) - start);
    return cell;
  }

  void next_absent() {
    known = R;
    if (absent_left == 0) return;
    known = member(Member::next(row_weights, cursor, absent_left, row_prior.empty()));
    --absent_left;
  }

  Number next_row(Number n) {
    Number row = 0;
    if (by_absence) {
      while (cursor == known) {
        ++cursor;
        next_absent();
      }
      row = cursor;
    } else if (G == 0) {
      row = member(Member::next(row_weights, cursor, n, row_prior.empty()));
    } else {
      reject_if(n > R - cursor);
      const Numbers groups(((R - cursor - 1) >> G) + 1, 64);
      const Number group = member(Member(groups, 0, n, groups.size(), ((n - 1) * 32) >> G));
      row = cursor + (group << G) + segment.states.second().number(G);
    }
    reject_if(row >= R);
    cursor = row + 1;
    return row;
  }

  Number row_entries(Number row, Number left, Number rows) {
    const Number spare = left - rows;
    if (rows == 1 || spare == 0) return spare + 1;
    Number above = 4 * spare;
    if (!row_prior.empty()) above = std::min<Number>(1 << 24, (4 * spare * row_prior[row]) / row_mean);
    return 1 + amount(0, (rows + above) * (rows + above), rows * rows, spare);
  }

  // A number up to `most`; its grade from upper / lower.
  Number amount(Number contexts, Number upper, Number lower, Number most) {
    Number grade = 0;
    while (grade < 30 && lower << (grade + 1) <= upper) ++grade;
    const Number context = contexts + (grade < 10 ? grade : 10 + grade % 2);
    const Number shift = grade < 10 ? 0 : (grade - 8) / 2;
    const auto& t = segment.learned.t[context];
    State& state = segment.states.near;
    Number s = 0;
    while (static_cast<Number>(t[s + 1]) <= state.slot() / 128) ++s;
    state.pass(static_cast<Number>(t[s]) * 128, static_cast<Number>(t[s + 1] - t[s]) * 128);
    segment.learned.saw_symbol(context, static_cast<std::int64_t>(s));
    constexpr std::array<Number, 16> low_bits = {0, 0, 0, 0, 0, 0, 0, 0, 2, 2, 3, 3, 4, 4, 5, 0};
    Number begin = Learned::begins[s], b = low_bits[s] + shift;
    if (s == 15) {
      const Number length = state.number(4);
      begin = 95 + (Number{1} << length);
      b = length + shift;
    }
    reject_if(b > 20);
    const Number value = (begin << shift) + (b > 0 ? state.number(b) : 0);
    reject_if(value > most);
    return value;
  }

  Number position(Number row, Number column) const {
    const Number at = (first + row) * C + column;
    reject_if(at < part.begin || at >= part.end);
    return at;
  }
  void put(Number row, Number column, bool minus) { segment.out.push_back({position(row, column), minus}); }

  void read() {
    const Number most = std::min(part.count, R);
    reject_if(part.count > R * C);
    const Number ratio = 16 + 32 * most * most / std::max(part.count, R);
    K = C == 1 || most == 1 ? most : most - amount(12, ratio * ratio, 256, most - 1);
    by_absence = 2 * K > R;
    absent_left = by_absence ? R - K : 0;
    weigh_rows();
    if (by_absence) next_absent();
    if (C == 1) {
      read_singles();
      return;
    }
    std::vector<Lane> lanes(2);
    Number left = part.count;
    for (Number rows = K; rows > 0; --rows) {
      const Number row = next_row(rows), n = row_entries(row, left, rows);
      reject_if(n > C);
      Lane& lane = lanes[2 * (part.count - left) + n <= part.count ? 0 : 1];
      for (Number more = n; more > 0; --more) lane.entries.push_back({row, more, more == n});
      left -= n;
    }
    read_lanes(lanes);
  }

  void read_singles() {
    for (Number rows = K; rows > 0; --rows) {
      segment.states.before_step(segment.entries_left);
      if (G == 0 && !by_absence) {
        const SegmentReader::Signed found = segment.entry(
            segment.states.near, Member::next(row_weights, cursor, rows, row_prior.empty()), 3, nullptr);
        segment.learned.saw_sign(49, found.minus);
        cursor = found.cell + 1;
        put(found.cell, 0, found.minus);
      } else {
        const Number row = next_row(rows);
        put(row, 0, segment.lone_sign());
      }
    }
  }

  // The entries of one lane, and where it is.
  struct Lane {
    struct Entry {
      Number row, more;
      bool first;
    };
    std::vector<Entry> entries{};
    std::size_t at = 0;
    Number from = 0, leaning = 0;
    std::vector<AdaptEntry> out{};
    bool any() const { return at < entries.size(); }
  };

  void read_lanes(std::vector<Lane>& lanes) {
    LearnedColumns columns(C, column_prior);
    if (!column_leaning.empty()) columns.leaning = column_leaning;
    while (lanes[0].any() || lanes[1].any()) {
      segment.states.before_step(segment.entries_left);
      std::vector<std::pair<Lane*, SegmentReader::Signed>> step;
      for (Lane& lane : lanes) {
        if (!lane.any()) continue;
        const Lane::Entry& entry = lane.entries[lane.at];
        if (entry.first) {
          lane.from = 0;
          lane.leaning = row_leaning.empty() ? 3 : row_leaning[entry.row];
        }
        const Member member = Member::next(columns.weights, lane.from, entry.more, columns.alike);
        State& state = &lane == &lanes[0] ? segment.states.near : segment.states.second();
        step.push_back({&lane, segment.entry(state, member, lane.leaning, &columns.leaning)});
      }
      for (auto& [lane, found] : step) learn(*lane, found, columns);
      columns.end_step(step.size());
    }
    for (const Lane& lane : lanes) segment.out.insert(segment.out.end(), lane.out.begin(), lane.out.end());
  }

  void learn(Lane& lane, const SegmentReader::Signed& found, LearnedColumns& columns) {
    segment.learned.saw_sign(found.context, found.minus);
    lane.out.push_back({position(lane.entries[lane.at].row, found.cell), found.minus});
    ++columns.hits[found.cell];
    lane.leaning = moved(lane.leaning, found.minus);
    columns.leaning[found.cell] = moved(columns.leaning[found.cell], found.minus);
    lane.from = found.cell + 1;
    ++lane.at;
  }
};

constexpr std::array<Number, 6> trusts = {16, 64, 256, 1024, 4096, 65536};

std::int64_t lg(Number v) {
  const Number j = bits(v) - 1, m = ((v * 256) >> j) % 256;
  return static_cast<std::int64_t>(256 * j + m + ((88 * m * (256 - m)) >> 16));
}

}  // namespace

void AdaptHistory::Side::learn(const std::vector<std::uint64_t>& fresh) {
  Number sum = 0, entries = 0;
  for (Number value : x) sum += value;
  for (Number f : fresh) entries += f;
  for (std::size_t a = 0; sum != 0 && a < trusts.size(); ++a) {
    std::int64_t gain = -static_cast<std::int64_t>(entries) * lg(trusts[a] + sum / x.size());
    for (std::size_t i = 0; i < x.size(); ++i)
      gain += static_cast<std::int64_t>(fresh[i]) * lg(trusts[a] + x[i]);
    merit[a] += gain - merit[a] / 4;
  }
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = 4 * x[i] / 5 + 256 * fresh[i];
}

std::vector<std::uint64_t> AdaptHistory::Side::priors(std::uint64_t first, std::uint64_t count) const {
  const std::int64_t best = *std::max_element(merit.begin(), merit.end());
  Number trust = 256;
  if (merit[2] != best)
    trust = trusts[static_cast<std::size_t>(std::find(merit.begin(), merit.end(), best) - merit.begin())];
  Number sum = 0;
  for (Number i = 0; i < count; ++i) sum += x[first + i];
  Numbers result;
  for (Number i = 0; i < count; ++i) result.push_back((256 * (trust + x[first + i])) / (trust + sum / count));
  return result;
}

std::vector<std::uint64_t> AdaptHistory::Side::leanings(std::uint64_t first, std::uint64_t count) const {
  Numbers result;
  for (Number i = 0; i < count; ++i) result.push_back(std::clamp<Number>(leaning[first + i], 1, 5));
  return result;
}

AdaptHistory::AdaptHistory(const std::vector<AdaptTensor>& shapes) {
  for (const AdaptTensor& shape : shapes) {
    Tensor tensor;
    tensor.size = shape.rows * shape.columns;
    tensor.given_columns = shape.columns;
    tensor.columns = shape.columns > cells_max ? 1024 : shape.columns;
    const Number rows = (tensor.size + tensor.columns - 1) / tensor.columns;
    if (rows <= cells_max) tensor.rows.x.assign(rows, 0);
    tensor.by_column.x.assign(tensor.columns, 0);
    tensor.rows.leaning.assign(rows, 3);
    tensor.by_column.leaning.assign(tensor.columns, 3);
    tensors.push_back(tensor);
  }
}

void AdaptHistory::remember(const std::vector<std::vector<AdaptEntry>>& entries) {
  for (std::size_t t = 0; t < tensors.size(); ++t) {
    Numbers rows(tensors[t].rows.x.size(), 0), columns(tensors[t].columns, 0);
    for (const AdaptEntry& entry : entries[t]) {
      const Number row = entry.position / tensors[t].columns, column = entry.position % tensors[t].columns;
      if (!rows.empty()) ++rows[row];
      ++columns[column];
      for (Number* leaning : {&tensors[t].rows.leaning[row], &tensors[t].by_column.leaning[column]})
        *leaning = moved(*leaning, entry.minus);
    }
    tensors[t].rows.learn(rows);
    tensors[t].by_column.learn(columns);
  }
}

std::optional<std::vector<AdaptEntry>> decode_adapt(const std::vector<AdaptPart>& parts,
                                                    const std::vector<std::uint8_t>& body,
                                                    const AdaptHistory* history) {
  try {
    if (parts.empty()) return body.empty() ? std::optional(std::vector<AdaptEntry>{}) : std::nullopt;
    Number count = 0;
    for (const AdaptPart& part : parts) count += part.count;
    SegmentReader segment{.states = States(body, count), .entries_left = count};
    for (const AdaptPart& part : parts) {
      PartReader reader(segment, part);
      reader.use(history);
      reader.read();
    }
    return segment.out;
  } catch (Rejected) {
    return std::nullopt;
  }
}

}  // namespace rumor::slow
