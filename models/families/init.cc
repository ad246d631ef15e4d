// Initial weights, in integers: two machines that agree on the seed agree on every bit, without a
// floating-point library between them.
#include <algorithm>
#include <cmath>
#include <span>

#include "models/families/model.h"
#include "runtime/base/check.h"
#include "runtime/base/prng.h"

namespace rumor::models {
namespace {

// The largest r with r * r <= n.
std::uint64_t square_root(std::uint64_t n) {
  std::uint64_t root = 0;
  for (std::uint64_t bit = std::uint64_t{1} << 31; bit; bit >>= 1) {
    const std::uint64_t trial = root | bit;
    if (trial * trial <= n) root = trial;
  }
  return root;
}

void fill_uniform(std::span<std::int32_t> weights, TensorStart start, int grid_bits, Prng& prng) {
  const std::uint64_t square =
      (std::uint64_t{3} * start.variance_over << (2 * grid_bits)) / start.variance_under;
  const auto bound = static_cast<std::int64_t>(std::min<std::uint64_t>(square_root(square), 0x7fff'ffff));
  for (std::int32_t& weight : weights) weight = static_cast<std::int32_t>(prng.between(-bound, bound));
}

// The sum of twelve uniform 16-bit numbers has a deviation of 2^16, except for a 2^-33rd of it, around 12 * 65535 / 2.
void fill_normal(std::span<std::int32_t> weights, TensorStart start, int grid_bits, Prng& prng) {
  constexpr int fraction_bits = 30;
  const std::uint64_t square =
      (std::uint64_t{start.variance_over} << (2 * fraction_bits)) / start.variance_under;
  const auto deviation = static_cast<std::int64_t>(square_root(square));
  const int shift = 17 + fraction_bits - grid_bits;  // 17: twice the sum, so that its middle is whole
  for (std::int32_t& weight : weights) {
    std::int64_t sum = 0;
    for (int draw = 0; draw < 3; ++draw) {
      const std::uint64_t bits = prng.next();
      for (int at = 0; at < 64; at += 16) sum += static_cast<std::int64_t>(bits >> at & 0xffff);
    }
    const std::int64_t scaled = (2 * sum - 12 * 65535) * deviation + (std::int64_t{1} << (shift - 1));
    weight = static_cast<std::int32_t>(std::clamp<std::int64_t>(scaled >> shift, -0x7fff'ffff, 0x7fff'ffff));
  }
}

void fill(std::span<std::int32_t> weights, TensorStart start, int grid_bits, Prng prng) {
  RUMOR_CHECK(start.variance_over <= 5);  // 3 * 5 * 4^30 still fits 64 bits
  RUMOR_CHECK(start.variance_under >= 1);
  switch (start.kind) {
    case TensorStart::Kind::zero:
      break;
    case TensorStart::Kind::one:
      std::fill(weights.begin(), weights.end(), std::int32_t{1} << grid_bits);
      break;
    case TensorStart::Kind::uniform:
      fill_uniform(weights, start, grid_bits, prng);
      break;
    case TensorStart::Kind::normal:
      fill_normal(weights, start, grid_bits, prng);
      break;
  }
}

template <class StartOf>
LargeVector<std::int32_t> begin_all(const ParamLayout& layout, std::uint64_t seed, int grid_bits,
                                    StartOf start_of) {
  RUMOR_CHECK(grid_bits >= 0);
  RUMOR_CHECK(grid_bits <= 30);
  LargeVector<std::int32_t> weights(layout.params());
  for (const TensorInfo& tensor : layout.tensors())
    fill(std::span(weights).subspan(tensor.offset, tensor.size), start_of(tensor), grid_bits,
         Prng::named(seed, tensor.name));
  return weights;
}

}  // namespace

TensorStart TensorStart::by_inputs(const TensorInfo& tensor) {
  if (tensor.shape.size() < 2) return {};  // a bias
  return {Kind::uniform, 2, tensor.cols()};
}

LargeVector<std::int32_t> initial_weights(const Model& model, std::uint64_t seed, int grid_bits) {
  return begin_all(model.layout(), seed, grid_bits,
                   [&](const TensorInfo& tensor) { return model.start_of(tensor); });
}

LargeVector<std::int32_t> initial_weights(const ParamLayout& layout, std::uint64_t seed, int grid_bits) {
  return begin_all(layout, seed, grid_bits, TensorStart::by_inputs);
}

void to_floats(std::span<const std::int32_t> weights, int grid_bits, std::span<float> floats) {
  RUMOR_CHECK(weights.size() == floats.size());
  const float unit = std::ldexp(1.0f, -grid_bits);
  std::transform(weights.begin(), weights.end(), floats.begin(),
                 [unit](std::int32_t w) { return static_cast<float>(w) * unit; });
}

std::vector<float> to_floats(std::span<const std::int32_t> weights, int grid_bits) {
  std::vector<float> floats(weights.size());
  to_floats(weights, grid_bits, floats);
  return floats;
}

}  // namespace rumor::models
