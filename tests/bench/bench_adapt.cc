// ADAPT and LINK: bits against the bound of independent positions and against RICE, whole messages with heads
// included, and the speed of the coder on one core.
//   synthetic   a layout of four tensors with rows and columns of uneven rates and signs that lean, and the
//   same
//               number of independent positions, by density
//   files       captures in the sparse form of `rumor stats`, named on the command line
// LINK skips the first four messages of a source, like the figures of compress/ADAPT.md.
// usage: bench_adapt [FILE.safetensors ...]
#include <algorithm>
#include <cstdio>
#include <numeric>
#include <string>
#include <vector>

#include "compress/statistics.h"
#include "compress/transport.h"
#include "runtime/base/prng.h"
#include "tests/bench/measure.h"
#include "tools/update_file.h"

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
};

// The coder alone, segment by segment.
void time_segments(const ParamLayout& layout, const SparseUpdate& update, Totals& totals) {
  const Segments segments = segments_of(layout, counts_of(layout, update), update.index);
  for (const Segment& segment : segments.list) {
    const std::span<const Part> parts = segments.parts_of(segment);
    std::vector<std::uint32_t> positions;
    std::size_t at = segment.first_entry;
    for (const Part& part : parts) {
      for (std::uint32_t i = 0; i < part.count; ++i)
        positions.push_back(update.index[at++] - layout.tensors()[part.tensor].offset);
    }
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
    totals.adapt += bits(encode_transport(layout, update, TransportChoice::adapt, nullptr));
    const double linked = bits(encode_transport(layout, update, TransportChoice::link, &history));
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
  std::printf("%-40s %7.3f %7.3f %7.3f %7.3f   %6.1f %6.1f\n", name.c_str(), totals.bound / totals.entries,
              totals.rice / totals.bound, totals.adapt / totals.bound, link,
              totals.entries / totals.encode_seconds / 1e6, totals.entries / totals.decode_seconds / 1e6);
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
  std::printf("%-40s %7s %7s %7s %7s   %6s %6s\n", "bits an entry; ratios to the bound; million/s", "bound",
              "rice", "adapt", "link", "encode", "decode");
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
