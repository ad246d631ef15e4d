#include "tests/gpu/emulation/emulated_product.h"

#include <bit>
#include <cmath>
#include <vector>

#include "models/kernels/kernels.h"

namespace rumor::gpu {

void emulated_product(const MatmulArgs& args, const float* a, const float* b, float* y) {
  const long rows = args.rows, columns = args.columns, depth = args.depth;
  const long a_row = layout_of_a(args).stride, y_row = layout_of_y(args).stride;
  long b_row = layout_of_b(args).stride;
  const models::KernelTable& k = models::kernels();
  const models::MatrixView left = args.a_turned ? models::MatrixView{a, 1, a_row} : models::MatrixView{a, a_row, 1};
  std::vector<float> turned;
  if (args.b_turned) {
    turned.resize(static_cast<std::size_t>(depth * columns));
    k.transpose(columns, depth, b, b_row, turned.data(), columns);
    b = turned.data();
    b_row = columns;
  }
  k.matmul(rows, columns, depth, left, b, b_row, y, y_row, args.add ? models::Start::output : models::Start::zero);
}

float emulated_tf32(float value) {
  if (!std::isfinite(value)) return value;
  const auto bits = std::bit_cast<std::uint32_t>(value);
  return std::bit_cast<float>((bits + 0xfff + (bits >> 13 & 1)) & ~std::uint32_t{0x1fff});
}

}  // namespace rumor::gpu
