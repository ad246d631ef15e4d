#include "gpu/optimizers/newton_schulz.h"

#include <algorithm>
#include <utility>

#include "gpu/device/placed_arrays.h"
#include "models/optimizers/newton_schulz.h"

namespace rumor::gpu {

namespace {

bool is_tall(const MatrixLayout& size) { return size.rows > size.columns; }

std::uint32_t order_of(const MatrixLayout& size) { return std::min(size.rows, size.columns); }

std::uint64_t square_of(const MatrixLayout& size) { return std::uint64_t{order_of(size)} * order_of(size); }

}  // namespace

std::size_t DeviceNewtonSchulz::matrix_bytes(Matrix size, Precision precision) {
  const std::size_t order = std::min(size.rows, size.columns), numbers = std::size_t{size.rows} * size.columns;
  return precision == Precision::bf16 ? 4 * numbers + 10 * order * order : 8 * (numbers + order * order);
}

Result<DeviceNewtonSchulz> DeviceNewtonSchulz::create(const Gpu& gpu, Precision precision,
                                                      std::span<const MatrixGroup> groups) {
  DeviceNewtonSchulz made(gpu, precision);
  std::size_t values = 0, squares = 0, partials = 0, matrices = 0;
  for (const MatrixGroup& group : groups) {
    values = std::max<std::size_t>(values, group.count * group.numbers());
    squares = std::max<std::size_t>(squares, group.count * square_of(group.layout));
    partials = std::max<std::size_t>(partials, group.count * square_partials(group.numbers()));
    matrices = std::max<std::size_t>(matrices, group.count);
  }
  PlacedArrays arrays;
  for (Numbers* array : {&made.x_, &made.next_}) arrays.add(*array, made.bf16_, values);
  for (float** array : {&made.gram_, &made.square_}) arrays.add(*array, squares);
  if (made.bf16_) arrays.add(made.polynomial_, true, squares);
  for (Result<void> room :
       {arrays.make_room(gpu, made.memory_, "Muon's matrices"), made.partial_.make_room(gpu, partials, "a norm"),
        made.total_.make_room(gpu, matrices, "a norm")})
    if (!room) return room.error();
  if (!made.bf16_) made.polynomial_ = made.square_;
  return made;
}

Result<void> DeviceNewtonSchulz::orthogonalise(const MatrixGroup& group, float* y) {
  const OptimizerTable& table = gpu_->table().optimizers;
  table.square_sums(gpu_->device(), group, y, partial_.data(), total_.data());
  table.scale_to_one(gpu_->device(), group, models::newton_norm_min, total_.data(), y, x_);
  Numbers from = x_, to = next_;
  for (int step = 1; step < models::newton_steps; ++step) {
    find_polynomial(group, from);
    products_.make(next_step(group, from, to));
    std::swap(from, to);
  }
  find_polynomial(group, from);
  MatmulArgs last = next_step(group, from, y);
  last.y_stride = group.layout.stride;
  last.y_step = group.step;
  products_.make(last);
  return products_.outcome();
}

// polynomial_ = a I + b A + c A^2 of each matrix, A = x x^T or x^T x.
void DeviceNewtonSchulz::find_polynomial(const MatrixGroup& group, ConstNumbers x) {
  const MatrixLayout& size = group.layout;
  const std::uint32_t order = order_of(size);
  MatmulArgs gram = product(order, order, std::max(size.rows, size.columns), x, x, gram_);
  gram.a_turned = is_tall(size);
  gram.b_turned = !is_tall(size);
  gram.batch = group.count;
  gram.a_step = gram.b_step = group.numbers();
  gram.y_step = square_of(size);
  products_.make(gram);
  if (bf16_)
    gpu_->table().model.round(gpu_->device(), group.count * square_of(size), gram_,
                              static_cast<Bf16*>(polynomial_.at));
  const ConstNumbers factor = bf16_ ? ConstNumbers(polynomial_) : ConstNumbers(gram_);
  MatmulArgs square = product(order, order, order, factor, factor, square_);
  square.batch = group.count;
  square.a_step = square.b_step = square.y_step = square_of(size);
  products_.make(square);
  gpu_->table().optimizers.quadratic(gpu_->device(), group.count, order,
                                     {models::newton_a, models::newton_b, models::newton_c}, gram_, square_,
                                     polynomial_);
}

// y = the polynomial times x, or x times the polynomial; y without gaps.
MatmulArgs DeviceNewtonSchulz::next_step(const MatrixGroup& group, ConstNumbers x, Numbers y) const {
  const MatrixLayout& size = group.layout;
  MatmulArgs args = is_tall(size) ? product(size.rows, size.columns, size.columns, x, polynomial_, y)
                                  : product(size.rows, size.columns, size.rows, polynomial_, x, y);
  args.batch = group.count;
  args.a_step = args.b_step = square_of(size);
  (is_tall(size) ? args.a_step : args.b_step) = args.y_step = group.numbers();
  return args;
}

}  // namespace rumor::gpu
