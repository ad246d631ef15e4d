#include "tests/format/slow_adapt.h"

#include <algorithm>

namespace rumor::slow {
namespace {

using Number = std::uint64_t;
using Numbers = std::vector<Number>;

constexpr Number scale = Number{1} << 27;
constexpr Number cells_max = 32768;

struct Rejected {};

void reject_if(bool condition) {
  if (condition) throw Rejected{};
}

// Chapter 2.
Number bits(Number value) {
  Number digits = 0;
  for (; value != 0; value /= 2) ++digits;
  return digits;
}

// Chapter 3.
struct State {
  Number x = 0;
  Numbers words;
  std::size_t next = 0;

  explicit State(const std::vector<std::uint8_t>& body) {
    const std::size_t length = body.size() <= 8 ? body.size() : 5 + (body.size() - 5) % 4;
    for (std::size_t i = 0; i < length; ++i) x += Number{body[i]} << (8 * i);
    for (std::size_t at = length; at < body.size(); at += 4) {
      Number word = 0;
      for (std::size_t i = 0; i < 4; ++i) word += Number{body[at + i]} << (8 * i);
      words.push_back(word);
    }
    reject_if(x >= Number{1} << 63);
    reject_if(!words.empty() && x < Number{1} << 31);
    reject_if(length > 0 && body[length - 1] == 0 && !(length == 5 && !words.empty()));
  }
  Number slot() const { return x % scale; }
  void pass(Number start, Number size) {
    x = size * (x / scale) + slot() - start;
    if (x < Number{1} << 31 && next < words.size()) x = (x << 32) + words[next++];
  }
  Number plain(Number bound) const {
    reject_if(x >= bound || next != words.size());
    return x;
  }
  Number number(Number n) {
    const Number u = scale / n;
    const Number value = std::min(slot() / u, n - 1);
    pass(value * u, value + 1 == n ? scale - value * u : u);
    return value;
  }
};

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

  Member(const Numbers& cells, Number from, Number left, Number to, Number others)
      : weights(cells), first(from), n(left), end(to), before(cells.size() + 1, 0) {
    for (std::size_t c = 0; c < cells.size(); ++c) before[c + 1] = before[c] + cells[c];
    const Number rest = before.back() - before[first];
    const Number extent = std::max(rest / 2, rest > others ? rest - others : 0);
    pace = (n <= 10 ? Number{1} << 40 : n * 109951162777) / extent;
  }
  static Member next(const Numbers& cells, Number first, Number n) {
    reject_if(first + n > cells.size());
    Number sum = 0;
    for (Number weight : cells) sum += weight;
    return Member(cells, first, n, cells.size() - n + 1, ((n - 1) * (sum / cells.size())) / 2);
  }
  Number start(Number c) const {
    if (c == end) return scale;
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
  Number total = 0, fresh = 0;

  LearnedColumns(Number columns, Numbers known)
      : weights(columns, 64), hits(columns, 0), leaning(columns, 2) {
    prior = std::move(known);
    if (!prior.empty()) make();
  }
  void make() {
    Number squares = 0, prior_squares = 0, foretold = 0;
    for (std::size_t c = 0; c < hits.size(); ++c) {
      squares += hits[c] * hits[c];
      if (prior.empty()) continue;
      prior_squares += prior[c] * prior[c];
      foretold += prior[c] * hits[c];
    }
    const Number C = hits.size(), trust = 8;
    Number even = total * total / C, chance = 2 * even + total;
    if (!prior.empty()) {
      even = total * (total * prior_squares / (256 * C)) / (256 * C);
      chance = 2 * total * foretold / (256 * C) + total;
    }
    const Number excess = squares + even > chance ? squares + even - chance : 0;
    const Number shape = std::clamp<Number>(64 * (even + trust) / (excess + trust), 2, 4096);
    for (std::size_t c = 0; c < hits.size(); ++c)
      weights[c] = (prior.empty() ? shape : std::max<Number>(1, (shape * prior[c]) >> 8)) + 64 * hits[c];
    fresh = 0;
  }
  void end_row(Number n) {
    total += n;
    fresh += n;
    if (fresh >= std::max({Number{1}, std::min<Number>(total >> 2, hits.size() >> 4), total >> 4})) make();
  }
};

// Chapters 7 and 8.
struct Learned {
  std::array<std::array<std::int64_t, 17>, 12> t{};
  std::array<Number, 12> used{};
  std::array<Number, 26> p{}, used_signs{};
  static constexpr std::array<Number, 16> begins = {0, 1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 24, 32, 48, 64, 96};

  Learned() {
    constexpr std::array<Number, 12> a = {3120,  9850,  16990, 24580, 32050, 38860,
                                          44800, 49790, 53790, 56890, 54000, 57000};
    const Number w = (1 << 20) - 2048;
    for (std::size_t context = 0; context < 12; ++context) {
      Number k = w, v = 0;
      for (Number s = 0; s < 16; ++s) {
        for (; v < begins[s]; ++v) k = (k * a[context]) >> 16;
        t[context][s] = static_cast<std::int64_t>(w - k + 128 * s);
      }
      t[context][16] = 1 << 20;
    }
    p.fill(1 << 21);
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
  bool sign(State& state, Number context, Number start, Number size) {
    const Number minus = 1 + (((size - 2) * p[context]) >> 22);
    const bool is_minus = state.slot() < start + minus;
    if (is_minus) {
      state.pass(start, minus);
    } else {
      state.pass(start + minus, size - minus);
    }
    const Number d = 65536 / (std::min<Number>(used_signs[context]++, 253) + 3);
    if (is_minus) {
      p[context] += (((Number{1} << 22) - 1 - p[context]) * d) >> 16;
    } else {
      p[context] -= (p[context] * d) >> 16;
    }
    return is_minus;
  }
};

Number moved(Number leaning, bool minus) {
  return minus ? (leaning > 0 ? leaning - 1 : 0) : std::min<Number>(leaning + 1, 4);
}

struct Segment {
  State state;
  Learned learned{};
  Number entries_left = 0;
  std::vector<AdaptEntry> out{};

  struct Signed {
    Number cell;
    bool minus;
  };
  // An entry whose sign shares the event of its cell. leanings: of the row, and of all cells; null for C = 1.
  Signed entry(const Member& member, Number row_leaning, const Numbers* leanings) {
    if (--entries_left == 0) {
      const Number plain = state.plain(2 * (member.end - member.first));
      return {member.first + plain / 2, plain % 2 == 1};
    }
    const Number cell = member.find(state.slot()), start = member.start(cell);
    const Number context = leanings == nullptr ? 25 : 5 * row_leaning + (*leanings)[cell];
    return {cell, learned.sign(state, context, start, member.start(cell + 1) - start)};
  }
  bool lone_sign() {
    if (--entries_left == 0) return state.plain(2) == 1;
    return learned.sign(state, 25, 0, scale);
  }
};

// Chapters 5 to 7, and of chapter 9 what concerns one part.
struct PartReader {
  Segment& segment;
  const AdaptPart& part;
  Number C, first, R, G = 0, K = 0, cursor = 0, known = 0, absent_left = 0;
  bool by_absence = false;
  Numbers row_weights, row_prior, column_prior;
  Number row_mean = 1;

  PartReader(Segment& whole, const AdaptPart& given)
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
    if (!tensor.rows.x.empty() && G == 0) row_prior = tensor.rows.priors(first, R);
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
    const Number cell = set.find(segment.state.slot()), start = set.start(cell);
    segment.state.pass(start, set.start(cell + 1) - start);
    return cell;
  }

  void next_absent() {
    known = R;
    if (absent_left == 0) return;
    known = member(Member::next(row_weights, cursor, absent_left));
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
      row = member(Member::next(row_weights, cursor, n));
    } else {
      reject_if(n > R - cursor);
      const Numbers groups(((R - cursor - 1) >> G) + 1, 64);
      const Number group = member(Member(groups, 0, n, groups.size(), ((n - 1) * 32) >> G));
      row = cursor + (group << G) + segment.state.number(Number{1} << G);
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
    Number grade = 0;
    while (grade < 30 && (rows * rows) << (grade + 1) <= (rows + above) * (rows + above)) ++grade;
    const Number context = grade < 10 ? grade : 10 + grade % 2, shift = grade < 10 ? 0 : (grade - 8) / 2;
    const auto& t = segment.learned.t[context];
    Number s = 0;
    while (static_cast<Number>(t[s + 1]) <= segment.state.slot() / 128) ++s;
    segment.state.pass(static_cast<Number>(t[s]) * 128, static_cast<Number>(t[s + 1] - t[s]) * 128);
    segment.learned.saw_symbol(context, static_cast<std::int64_t>(s));
    constexpr std::array<Number, 16> low_bits = {0, 0, 0, 0, 0, 0, 0, 0, 2, 2, 3, 3, 4, 4, 5, 0};
    Number begin = Learned::begins[s], b = low_bits[s] + shift;
    if (s == 15) {
      const Number length = segment.state.number(16);
      begin = 95 + (Number{1} << length);
      b = length + shift;
    }
    reject_if(b > 20);
    const Number beyond = (begin << shift) + (b > 0 ? segment.state.number(Number{1} << b) : 0);
    reject_if(beyond > spare);
    return beyond + 1;
  }

  void put(Number row, Number column, bool minus) {
    const Number position = (first + row) * C + column;
    reject_if(position < part.begin || position >= part.end);
    segment.out.push_back({position, minus});
  }

  void read() {
    const Number most = std::min(part.count, R);
    reject_if(part.count > R * C);
    K = C == 1 || most == 1 ? most : most - segment.state.number(most);
    by_absence = 2 * K > R;
    absent_left = by_absence ? R - K : 0;
    weigh_rows();
    if (by_absence) next_absent();
    LearnedColumns columns(C, column_prior);
    Number left = part.count;
    for (Number rows = K; rows > 0; --rows) {
      if (C == 1 && G == 0 && !by_absence) {
        const Segment::Signed found = segment.entry(Member::next(row_weights, cursor, rows), 2, nullptr);
        cursor = found.cell + 1;
        put(found.cell, 0, found.minus);
        continue;
      }
      const Number row = next_row(rows);
      if (C == 1) {
        put(row, 0, segment.lone_sign());
        continue;
      }
      const Number n = row_entries(row, left, rows);
      reject_if(n > C);
      left -= n;
      read_row(columns, row, n);
    }
  }

  void read_row(LearnedColumns& columns, Number row, Number n) {
    Number from = 0, leaning = 2;
    for (Number more = n; more > 0; --more) {
      const Segment::Signed found =
          segment.entry(Member::next(columns.weights, from, more), leaning, &columns.leaning);
      put(row, found.cell, found.minus);
      ++columns.hits[found.cell];
      leaning = moved(leaning, found.minus);
      columns.leaning[found.cell] = moved(columns.leaning[found.cell], found.minus);
      from = found.cell + 1;
    }
    columns.end_row(n);
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
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = 9 * x[i] / 10 + 256 * fresh[i];
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

AdaptHistory::AdaptHistory(const std::vector<AdaptTensor>& shapes) {
  for (const AdaptTensor& shape : shapes) {
    Tensor tensor;
    tensor.size = shape.rows * shape.columns;
    tensor.given_columns = shape.columns;
    tensor.columns = shape.columns > cells_max ? 1024 : shape.columns;
    const Number rows = (tensor.size + tensor.columns - 1) / tensor.columns;
    if (rows <= cells_max) tensor.rows.x.assign(rows, 0);
    tensor.by_column.x.assign(tensor.columns, 0);
    tensors.push_back(tensor);
  }
}

void AdaptHistory::remember(const std::vector<std::vector<std::uint64_t>>& positions) {
  for (std::size_t t = 0; t < tensors.size(); ++t) {
    Numbers rows(tensors[t].rows.x.size(), 0), columns(tensors[t].columns, 0);
    for (Number position : positions[t]) {
      if (!rows.empty()) ++rows[position / tensors[t].columns];
      ++columns[position % tensors[t].columns];
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
    Segment segment{.state = State(body)};
    for (const AdaptPart& part : parts) segment.entries_left += part.count;
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
