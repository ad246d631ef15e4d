// The synthetic set: integers from the seeded generator only, so every machine makes the same bytes.
#include <algorithm>

#include "models/data/data_sources.h"
#include "runtime/base/prng.h"

namespace rumor::models {
namespace {

constexpr std::uint32_t inputs = 64, classes = 10, clouds_per_class = 4;
constexpr std::uint32_t train_rows = 8'000, test_rows = 2'000;
// Centres are uniform in 128 +- spread; the noise of a value has a deviation of about 0.577 * noise (below).
constexpr int spread = 30, noise = 47;

// The centred sum of four uniform 16-bit numbers from one call of the generator: close to a normal distribution of
// deviation noise / sqrt(3).
int draw_noise(Prng& prng) {
  const std::uint64_t bits = prng.next();
  std::int64_t sum = 0;
  for (int shift = 0; shift < 64; shift += 16)
    sum += static_cast<std::int64_t>(bits >> shift & 0xffff) - 0x8000;
  return static_cast<int>(sum * noise / 0x10000);
}

using Centres = std::vector<int>;  // [classes][clouds_per_class][inputs]

Centres draw_centres(std::uint64_t seed) {
  Prng prng = Prng::named(seed, "synthetic centres");
  Centres centres(std::size_t{classes} * clouds_per_class * inputs);
  for (int& value : centres) value = 128 + static_cast<int>(prng.between(-spread, spread));
  return centres;
}

ByteExamples draw_rows(const Centres& centres, std::uint32_t rows, Prng prng) {
  ByteExamples examples;
  examples.rows = rows;
  examples.label.resize(rows);
  examples.pixels.reserve(std::size_t{rows} * inputs);
  for (std::uint32_t row = 0; row < rows; ++row) {
    const auto cloud = static_cast<std::uint32_t>(prng.below(classes * clouds_per_class));
    examples.label[row] = static_cast<std::uint8_t>(cloud / clouds_per_class);
    for (std::uint32_t i = 0; i < inputs; ++i) {
      const int value = centres[cloud * inputs + i] + draw_noise(prng);
      examples.pixels.push_back(static_cast<std::uint8_t>(std::clamp(value, 0, 255)));
    }
  }
  return examples;
}

}  // namespace

std::shared_ptr<const DataSet> make_synthetic(std::uint64_t seed) {
  const Centres centres = draw_centres(seed);
  DataSet data;
  data.name = "synthetic";
  data.inputs = inputs;
  data.channels = 1;  // so that models of pictures can be tried on it
  data.height = data.width = 8;
  data.classes = classes;
  data.train = draw_rows(centres, train_rows, Prng::named(seed, "synthetic train"));
  return finish_data(std::move(data), draw_rows(centres, test_rows, Prng::named(seed, "synthetic test")));
}

}  // namespace rumor::models
