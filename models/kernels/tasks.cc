#include "models/kernels/tasks.h"

#include "models/kernels/kernels.h"

namespace rumor::models {

void parallel_matmul(Parallel* parallel, long rows, long columns, long depth, MatrixView a, const float* b,
                     long b_row, float* y, long y_row, Start start) {
  const KernelTable& k = kernels();
  constexpr long worth_waking = 1 << 18;  // multiplications: some microseconds
  if (!parallel || rows * columns * depth < worth_waking) {
    k.matmul(rows, columns, depth, a, b, b_row, y, y_row, start);
  } else if (rows >= columns) {
    each_range(parallel, rows, 16, [&](Range part) {
      const MatrixView from{a.data + part.begin * a.row, a.row, a.column};
      k.matmul(part.size(), columns, depth, from, b, b_row, y + part.begin * y_row, y_row, start);
    });
  } else {
    each_range(parallel, columns, 48, [&](Range part) {
      k.matmul(rows, part.size(), depth, a, b + part.begin, b_row, y + part.begin, y_row, start);
    });
  }
}

}  // namespace rumor::models
