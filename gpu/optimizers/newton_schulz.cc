#include "gpu/optimizers/newton_schulz.h"

#include <algorithm>
#include <utility>

#include "gpu/device/placed_arrays.h"
#include "models/optimizers/newton_schulz.h"

namespace rumor::gpu {

namespace {

bool is_tall(const MatrixLayout& size) { return size.rows > size.columns; }

std::uint32_t order_of(const MatrixLayout& size) { return std::min(size.rows, size.columns); }

}  // namespace

Result<DeviceNewtonSchulz> DeviceNewtonSchulz::create(const Gpu& gpu, Precision precision,
                                                      std::span<const Matrix> sizes) {
  DeviceNewtonSchulz made(gpu, precision);
  std::size_t values = 0, order = 0;
  for (const Matrix& size : sizes) {
    values = std::max(values, std::size_t{size.rows} * size.columns);
    order = std::max<std::size_t>(order, std::min(size.rows, size.columns));
  }
  PlacedArrays arrays;
  for (float** array : {&made.x_, &made.next_}) arrays.add(*array, values);
  for (float** array : {&made.gram_, &made.polynomial_}) arrays.add(*array, order * order);
  for (Result<void> room :
       {arrays.make_room(gpu, made.memory_, "Muon's matrices"),
        made.partial_.make_room(gpu, square_partials(values), "a norm"), made.total_.make_room(gpu, 1, "a norm")})
    if (!room) return room.error();
  return made;
}

Result<void> DeviceNewtonSchulz::orthogonalise(const MatrixLayout& size, float* y) {
  const GpuTable& table = gpu_->table();
  const std::uint64_t count = std::uint64_t{size.rows} * size.columns;
  table.model.square_sum(gpu_->device(), count, x_, partial_.data(), total_.data());
  table.optimizers.scale_to_one(gpu_->device(), count, models::newton_norm_min, total_.data(), x_);
  const float* from = x_;
  float* to = next_;
  for (int step = 0; step < models::newton_steps; ++step) {
    find_polynomial(size, from);
    const bool last = step + 1 == models::newton_steps;
    multiply(size, from, last ? y : to, last ? size.stride : size.columns);
    from = std::exchange(to, to == next_ ? x_ : next_);
  }
  return products_.outcome();
}

void DeviceNewtonSchulz::find_polynomial(const MatrixLayout& size, const float* x) {
  const std::uint32_t order = order_of(size);
  MatmulArgs gram = product(order, order, std::max(size.rows, size.columns), x, x, gram_);
  gram.a_turned = is_tall(size);
  gram.b_turned = !is_tall(size);
  products_.make(gram);
  products_.make(product(order, order, order, gram_, gram_, polynomial_));
  gpu_->table().optimizers.quadratic(gpu_->device(), order,
                                     {models::newton_a, models::newton_b, models::newton_c}, gram_, polynomial_);
}

// y = the polynomial times x, or x times the polynomial.
void DeviceNewtonSchulz::multiply(const MatrixLayout& size, const float* x, float* y, std::uint32_t y_stride) {
  MatmulArgs args = is_tall(size) ? product(size.rows, size.columns, size.columns, x, polynomial_, y)
                                  : product(size.rows, size.columns, size.rows, polynomial_, x, y);
  args.y_stride = y_stride;
  products_.make(args);
}

}  // namespace rumor::gpu
