// ADAPT and LINK: bits against the bound of independent positions and against RICE, whole messages with heads
// included, and the speed of the coder on one core.
//   synthetic   a layout of four tensors with rows and columns of uneven rates and signs that lean, and the
//   same
//               number of independent positions, by density
//   files       captures in the sparse form of `rumor stats`, named on the command line
// LINK skips the first four messages of a source, like the figures of compress/ADAPT.md.
//
// The same run measures these bounds on the speed of one core:
//   events      columns (each with its sign), rows and entries of rows, for each entry
//   chain       decoding as many events in as many rows, one column after another, with weights and
//               probabilities that are given: what one chain allows when nothing is learned, checked or handed
//               out (a decoder has two, and may be faster)
//   fixed       microseconds that a segment takes to decode with one entry in each of its parts
// usage: bench_adapt [FILE.safetensors ...]
#include <algorithm>
#include <cstdio>
#include <numeric>
#include <string>
#include <vector>

#include "compress/link/adapt_coder.h"
#include "compress/link/adapt_columns.h"
#include "compress/link/adapt_member.h"
#include "compress/link/link_form.h"
#include "compress/statistics.h"
#include "runtime/base/prng.h"
#include "tests/bench/measure.h"
#include "tools/stats/update_file.h"

using namespace rumor;
using namespace rumor::compress;

namespace {

constexpr int unlinked_messages = 4;

std::vector<std::uint32_t> counts_of(const ParamLayout& layout, const SparseUpdate& update) {
  std::vector<std::uint32_t> counts;
  auto at = update.index.begin();
  for (const TensorInfo& tensor : layout.tensors()) {
    const auto end = std::lower_bound(at, update.index.end(), tensor.offset + tensor.size);
    counts.push_back(static_cast<std::uint32_t>(end - at));
    at = end;
  }
  return counts;
}

struct Totals {
  double bound = 0, rice = 0, adapt = 0, linked_bound = 0, link = 0;
  double entries = 0, encode_seconds = 0, decode_seconds = 0;
  double events = 0, chain_seconds = 0, segments = 0, fixed_seconds = 0;
};

// A state and where its next word stands.
struct Chain {
  std::uint64_t state = 0;
  const std::uint8_t* next = nullptr;
  const std::uint8_t* end = nullptr;

  std::uint32_t slot() const { return static_cast<std::uint32_t>(state & (scale - 1)); }

  void take(std::uint32_t start, std::uint32_t size) {
    state = size * (state >> scale_bits) + (state & (scale - 1)) - start;
    std::uint32_t word = 0;
    std::memcpy(&word, next, 4);
    const std::uint64_t wanted = (state < std::uint64_t{1} << 31 ? 1u : 0u) & (next != end ? 1u : 0u);
    next += 4 * wanted;
    state = state << (32 * wanted) | (word & (0 - wanted));
  }
};

// The rows of a part that have entries: how many each, and how many events say which rows they are.
struct Rows {
  std::vector<std::uint32_t> hits;
  std::uint32_t all = 0, columns = 0, events = 0;
};

Rows rows_of(const Part& part, std::span<const std::uint32_t> positions) {
  Rows rows{.all = (part.end - part.begin - 1) / part.columns + 1, .columns = part.columns};
  for (std::size_t i = 0; i < positions.size(); ++i) {
    const bool same = i > 0 && positions[i] / part.columns == positions[i - 1] / part.columns;
    if (same)
      ++rows.hits.back();
    else
      rows.hits.push_back(1);
  }
  const auto hit = static_cast<std::uint32_t>(rows.hits.size());
  rows.events = std::min(hit, rows.all - std::min(rows.all, hit));
  return rows;
}

// The next of `left` members in whatever the chain holds.
template <class Cells>
FoundCell next_in(const Chain& chain, const Cells& cells, std::uint32_t first, std::uint32_t left) {
  return left == 1 ? LastMember(cells, first).find(chain.slot())
                   : NextMember(cells, first, left).find(chain.slot());
}

// Rows, numbers of entries, columns and signs, from two states that read random words.
void bare_chain(const Rows& rows, const Columns& columns, const Counts& counts, const Signs& signs,
                Chain& entries, Chain& others) {
  const AlikeCells alike{.count = rows.all};
  std::uint32_t row = 0;
  for (std::size_t j = 0; j < rows.hits.size(); ++j) {
    if (j < rows.events && rows.all <= cells_max) {
      const FoundCell found = next_in(others, alike, row, rows.events - static_cast<std::uint32_t>(j));
      others.take(others.slot() - found.inside, found.size);
      row = found.cell + 1;
    }
    if (rows.columns > 1) {
      constexpr unsigned shift = scale_bits - Counts::symbol_bits;
      const std::uint32_t symbol = counts.find(3, others.slot() >> shift), from = counts.start(3, symbol);
      others.take(from << shift, (counts.start(3, symbol + 1) - from) << shift);
    }
    columns.with_cells([&](const auto& cells) {
      std::uint32_t first = 0;
      for (std::uint32_t left = rows.hits[j]; left > 0 && rows.columns > 1; --left) {
        const FoundCell found = next_in(entries, cells, first, left);
        const std::uint32_t size = found.size, minus = signs.share(Signs::context(3, 3), size);
        const std::uint32_t plus = ~sign_mask(found.inside < minus);
        entries.take(entries.slot() - found.inside + (minus & plus), (minus ^ plus) - plus + (size & plus));
        first = found.cell + 1;
      }
      return true;
    });
  }
}

void time_chain(const std::vector<Rows>& parts, Totals& totals) {
  Prng prng(3);
  std::vector<Columns> columns(parts.size());
  constexpr std::uint32_t hits = 64;  // enough for weights that differ
  std::size_t entries = 0;
  for (std::size_t p = 0; p < parts.size(); ++p) {
    columns[p].begin(parts[p].columns, hits, nullptr, nullptr);
    Columns::Row row = columns[p].row();
    for (std::uint32_t i = 0; i < hits; ++i) row.hit(i * 37 % parts[p].columns, 0);
    columns[p].grow(hits);
    for (const std::uint32_t some : parts[p].hits) entries += some;
    totals.events += parts[p].events + (parts[p].columns > 1 ? static_cast<double>(parts[p].hits.size()) : 0);
  }
  totals.events += static_cast<double>(entries);
  Bytes words(32 * entries + 64);
  for (std::uint8_t& byte : words) byte = static_cast<std::uint8_t>(prng.below(256));
  const Counts counts;
  const Signs signs;
  std::uint64_t kept = 0;
  totals.chain_seconds += bench::best_of(5, [&] {
    Chain near{prng.next() >> 2, words.data(), words.data() + words.size() - 8};
    Chain far{prng.next() >> 2, words.data() + words.size() / 2, words.data() + words.size() - 8};
    for (std::size_t p = 0; p < parts.size(); ++p) bare_chain(parts[p], columns[p], counts, signs, near, far);
    kept += near.state + far.state;
  });
  volatile std::uint64_t sink = kept;
  static_cast<void>(sink);
}

// A segment with the first entry of each part alone.
void time_fixed(std::span<const Part> parts, const std::vector<std::uint32_t>& positions, Totals& totals) {
  std::vector<Part> few(parts.begin(), parts.end());
  std::vector<std::uint32_t> firsts;
  std::size_t at = 0;
  for (Part& part : few) {
    firsts.push_back(positions[at]);
    at += part.count;
    part.count = 1;
  }
  const Bytes negative(firsts.size(), 0);
  Bytes body, signs(firsts.size());
  adapt_encode(few, firsts, negative, nullptr, body);
  totals.fixed_seconds += bench::best_of(5, [&] {
    if (!adapt_decode(few, body, nullptr, firsts.data(), signs.data())) std::abort();
  });
  totals.segments += 1;
}

// The coder alone, segment by segment.
void time_segments(const ParamLayout& layout, const SparseUpdate& update, Totals& totals) {
  const Segments segments = segments_of(layout, counts_of(layout, update), update.index);
  for (const Segment& segment : segments.list) {
    const std::span<const Part> parts = segments.parts_of(segment);
    std::vector<std::uint32_t> positions;
    std::vector<Rows> rows;
    std::size_t at = segment.first_entry;
    for (const Part& part : parts) {
      for (std::uint32_t i = 0; i < part.count; ++i)
        positions.push_back(update.index[at++] - layout.tensors()[part.tensor].offset);
      rows.push_back(rows_of(part, std::span(positions).last(part.count)));
    }
    time_chain(rows, totals);
    time_fixed(parts, positions, totals);
    const std::span<const std::uint8_t> negative(update.negative.data() + segment.first_entry,
                                                 segment.entries);
    Bytes body, signs(segment.entries);
    totals.encode_seconds += bench::best_of(5, [&] {
      body.clear();
      adapt_encode(parts, positions, negative, nullptr, body);
    });
    totals.decode_seconds += bench::best_of(5, [&] {
      if (!adapt_decode(parts, body, nullptr, positions.data(), signs.data())) std::abort();
    });
  }
}

Totals measure(const ParamLayout& layout, const std::vector<SparseUpdate>& updates) {
  Totals totals;
  LinkHistory history(layout);
  int message = 0;
  for (const SparseUpdate& update : updates) {
    const double bound = bound_bits(layout.params(), update.index.size());
    const auto bits = [](const Bytes& bytes) { return 8.0 * static_cast<double>(bytes.size()); };
    totals.bound += bound;
    totals.entries += static_cast<double>(update.index.size());
    totals.rice += bits(encode(layout, update));
    totals.adapt += bits(encode_link_form(layout, update, LinkForm::adapt, nullptr));
    const double linked = bits(encode_link_form(layout, update, LinkForm::link, &history));
    if (message++ >= unlinked_messages) {
      totals.link += linked;
      totals.linked_bound += bound;
    }
    time_segments(layout, update, totals);
  }
  return totals;
}

void print(const std::string& name, const Totals& totals) {
  const double link = totals.linked_bound > 0 ? totals.link / totals.linked_bound : 0.0;
  std::printf("%-40s %7.3f %7.3f %7.3f %7.3f   %6.1f %6.1f   %6.2f %6.1f %6.1f\n", name.c_str(),
              totals.bound / totals.entries, totals.rice / totals.bound, totals.adapt / totals.bound, link,
              totals.entries / totals.encode_seconds / 1e6, totals.entries / totals.decode_seconds / 1e6,
              totals.events / totals.entries, totals.entries / totals.chain_seconds / 1e6,
              1e6 * totals.fixed_seconds / totals.segments);
}

// Rates of some hundred rows or columns: squares of uniforms, so that some are a hundred times others.
std::vector<std::uint32_t> uneven(Prng& prng, std::uint32_t count) {
  std::vector<std::uint32_t> shares;
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::uint64_t rate = 1 + prng.below(30);
    shares.insert(shares.end(), rate * rate / 9 + 1, i);
  }
  return shares;
}

// Every message draws from the same rates; the sign follows its column two times in three.
std::vector<SparseUpdate> synthetic(const ParamLayout& layout, double density, bool clustered) {
  Prng prng(1);
  std::vector<std::vector<std::uint32_t>> rows, columns;
  for (const TensorInfo& tensor : layout.tensors()) {
    rows.push_back(uneven(prng, tensor.rows()));
    columns.push_back(uneven(prng, tensor.cols()));
  }
  std::vector<SparseUpdate> updates(8);
  for (SparseUpdate& update : updates) {
    update.step = 1;
    for (std::size_t t = 0; t < rows.size(); ++t) {
      const TensorInfo& tensor = layout.tensors()[t];
      std::vector<std::uint32_t> chosen;
      const auto wanted = static_cast<std::size_t>(density * tensor.size);
      while (chosen.size() < wanted) {
        for (std::size_t i = chosen.size(); i < wanted; ++i) {
          const std::uint32_t row = rows[t][prng.below(rows[t].size())];
          const std::uint32_t position = row * tensor.cols() + columns[t][prng.below(columns[t].size())];
          chosen.push_back(clustered ? position : static_cast<std::uint32_t>(prng.below(tensor.size)));
        }
        std::sort(chosen.begin(), chosen.end());
        chosen.erase(std::unique(chosen.begin(), chosen.end()), chosen.end());
      }
      for (const std::uint32_t position : chosen) {
        const bool leaning = clustered && prng.chance(2, 3);
        update.index.push_back(tensor.offset + position);
        update.negative.push_back(
            static_cast<std::uint8_t>(leaning ? position % tensor.cols() & 1 : prng.below(2)));
      }
    }
  }
  return updates;
}

bool measure_file(const std::string& path) {
  const Result<tools::UpdateFile> file = tools::UpdateFile::read(path);
  if (!file.ok() || file->dense()) {
    std::fprintf(stderr, "%s: %s\n", path.c_str(), file.ok() ? "dense" : file.error().text.c_str());
    return false;
  }
  std::vector<SparseUpdate> updates;
  for (std::size_t step = 0; step < file->steps(); ++step) updates.push_back(file->update(step).value());
  print(path.substr(path.rfind('/') + 1), measure(file->layout(), updates));
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  std::printf("%-40s %7s %7s %7s %7s   %6s %6s   %6s %6s %6s\n",
              "bits an entry; ratios to the bound; million/s", "bound", "rice", "adapt", "link", "encode",
              "decode", "events", "chain", "fixed");
  const ParamLayout layout =
      ParamLayout::create({{"a", {1024, 784}}, {"b", {1024, 1024}}, {"c", {512, 3136}}, {"d", {1024, 256}}})
          .value();
  for (const double density : {0.01, 0.001, 0.0001}) {
    for (const bool clustered : {true, false})
      print(std::string(clustered ? "clustered " : "independent ") + std::to_string(density),
            measure(layout, synthetic(layout, density, clustered)));
  }
  bool sound = true;
  for (int i = 1; i < argc; ++i) sound = measure_file(argv[i]) && sound;
  return sound ? 0 : 1;
}
