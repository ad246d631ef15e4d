#include "tests/gpu/emulated_product.h"

#include <bit>
#include <cmath>
#include <vector>

#include "models/kernels.h"

namespace rumor::gpu {

void emulated_product(const MatmulArgs& args, float* y) {
  const long rows = args.rows, columns = args.columns, depth = args.depth;
  const models::KernelTable& k = models::kernels();
  const models::MatrixView a =
      args.a_turned ? models::MatrixView{args.a, 1, rows} : models::MatrixView{args.a, depth, 1};
  std::vector<float> turned;
  const float* b = args.b;
  if (args.b_turned) {
    turned.resize(static_cast<std::size_t>(depth * columns));
    k.transpose(columns, depth, args.b, depth, turned.data(), columns);
    b = turned.data();
  }
  k.matmul(rows, columns, depth, a, b, columns, y, columns, args.add ? models::Start::output : models::Start::zero);
}

float emulated_tf32(float value) {
  if (!std::isfinite(value)) return value;
  const auto bits = std::bit_cast<std::uint32_t>(value);
  return std::bit_cast<float>((bits + 0xfff + (bits >> 13 & 1)) & ~std::uint32_t{0x1fff});
}

}  // namespace rumor::gpu
