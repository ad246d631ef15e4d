// Products: the matrix products of one pass through a model. A product may fail before it begins
// (gpu/device/model_table.h). Later work of the pass then computes meaningless values and does no harm. A pass
// therefore need not stop: it checks for an error once, at its end.
//
// Thread: one caller at a time.
#pragma once

#include <optional>
#include <utility>

#include "gpu/device/device.h"

namespace rumor::gpu {

// Arguments for the product of a [rows, depth] and b [depth, columns]; all other arguments are zero.
inline MatmulArgs product(std::uint32_t rows, std::uint32_t columns, std::uint32_t depth, ConstNumbers a,
                          ConstNumbers b, Numbers y) {
  MatmulArgs args{};
  args.rows = rows;
  args.columns = columns;
  args.depth = depth;
  args.a = a;
  args.b = b;
  args.y = y;
  return args;
}

class Products {
 public:
  // Refers to `gpu`.
  Products(const Gpu& gpu, Precision precision) : gpu_(&gpu), precision_(precision) {}

  void make(MatmulArgs args) {
    args.precision = precision_;
    if (auto done = gpu_->matmul(args); !done && !failure_) failure_ = done.error();
  }
  // The first error since the last call.
  Result<void> outcome() {
    if (failure_) return *std::exchange(failure_, std::nullopt);
    return {};
  }

 private:
  const Gpu* gpu_;
  Precision precision_;
  std::optional<Error> failure_;
};

}  // namespace rumor::gpu
