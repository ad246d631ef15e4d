// Initial weights, in integers: two machines that agree on the seed agree on every bit, without a
// floating-point library between them.
#include <algorithm>

#include "models/model.h"
#include "runtime/base/check.h"
#include "runtime/base/large_pages.h"
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

}  // namespace

std::vector<std::int32_t> initial_weights(const ParamLayout& layout, std::uint64_t seed, int grid_bits) {
  RUMOR_CHECK(grid_bits >= 0);
  RUMOR_CHECK(grid_bits <= 30);  // 6 * 4^30 still fits 64 bits
  std::vector<std::int32_t> weights;
  assign_in_large_pages(weights, layout.params(), 0);
  for (const TensorInfo& tensor : layout.tensors()) {
    if (tensor.shape.size() < 2) continue;  // a bias
    const std::uint64_t variance = (std::uint64_t{6} << (2 * grid_bits)) / tensor.cols();
    const auto bound = static_cast<std::int64_t>(std::min<std::uint64_t>(square_root(variance), 0x7fff'ffff));
    Prng prng = Prng::named(seed, tensor.name);
    for (std::uint32_t i = 0; i < tensor.size; ++i)
      weights[tensor.offset + i] = static_cast<std::int32_t>(prng.between(-bound, bound));
  }
  return weights;
}

}  // namespace rumor::models
