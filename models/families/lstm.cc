#include "models/families/lstm.h"

#include <algorithm>
#include <utility>

#include "models/kernels/tasks.h"
#include "runtime/base/check.h"
#include "runtime/base/memory_bytes.h"

namespace rumor::models {

namespace {

std::size_t as_size(long count) { return static_cast<std::size_t>(count); }

// move(time-major row, batch-major row) for all places of a window: their numbers in the two orders of rows.
template <class Move>
void each_place(Parallel* parallel, const TokenBatch& batch, Move&& move) {
  each_range(parallel, batch.context, 1, [&](Range part) {
    for (long t = part.begin; t < part.end; ++t)
      for (long row = 0; row < batch.batch; ++row) move(t * batch.batch + row, row * batch.context + t);
  });
}

}  // namespace

Result<std::unique_ptr<Model>> make_lstm(const ModelConfig& config) {
  Result<ParamLayout> layout = lstm_layout(config);
  if (!layout) return layout.error();
  Result<LstmShape> shape = lstm_shape(config, *layout);
  if (!shape) return shape.error();
  return std::unique_ptr<Model>(std::make_unique<Lstm>(std::move(*layout), std::move(*shape), config.context));
}

Lstm::Lstm(ParamLayout layout, LstmShape shape, std::uint32_t context)
    : LanguageModel(std::move(layout),
                    {shape.vocabulary, context, shape.units, shape.part, shape.head, shape.head_bias}),
      shape_(std::move(shape)),
      context_(context),
      layers_(shape_.layer.size()) {
  RUMOR_CHECK(!layers_.empty() && context >= 1);
}

TensorStart Lstm::start_of(const TensorInfo& tensor) const {
  if (tensor.shape.size() < 2) return {};
  if (shape_.part.is_first() && tensor.offset == shape_.table) return {TensorStart::Kind::normal, 1, 16};
  return {TensorStart::Kind::uniform, 1, 3 * static_cast<std::uint32_t>(shape_.units)};
}

LstmLayer::Shape Lstm::shape_of(std::size_t layer, long batch) const {
  const long inputs = shape_.inputs_of(layer);
  return {batch, context_, inputs, shape_.reads_tokens(layer) ? inputs : LstmLayer::padded(inputs),
          shape_.units};
}

LstmLayer::Weights Lstm::weights_of(std::size_t layer, const float* params) const {
  const LstmShape::Layer& at = shape_.layer[layer];
  return {params + at.ih, params + at.hh, params + at.bias_ih, params + at.bias_hh};
}

LstmLayer::Input Lstm::input_of(std::size_t layer, long batch) {
  if (layer > 0) return {layers_[layer - 1].out(0), context_ * batch};
  if (!shape_.reads_tokens(0)) return {below_.data(), context_ * batch};
  return {embedded_.data(), static_cast<long>(distinct_.size()), row_of_.data()};
}

// -> distinct_, row_of_, embedded_
void Lstm::take_tokens(const float* params, const TokenBatch& batch) {
  const auto rows = as_size(batch.rows());
  std::vector<std::int32_t> place(as_size(shape_.vocabulary), -1);
  for (std::size_t row = 0; row < rows; ++row) place[batch.token(static_cast<long>(row))] = 0;
  distinct_.clear();
  for (std::size_t token = 0; token < place.size(); ++token) {
    if (place[token] < 0) continue;
    place[token] = static_cast<std::int32_t>(distinct_.size());
    distinct_.push_back(static_cast<Token>(token));
  }
  row_of_.resize(rows);
  each_place(nullptr, batch,
             [&](long by_time, long by_row) { row_of_[as_size(by_time)] = place[batch.token(by_row)]; });
  float* to = room_in(embedded_, distinct_.size() * as_size(shape_.embedding));
  for (const Token token : distinct_) {
    std::copy_n(params + shape_.table + token * shape_.embedding, shape_.embedding, to);
    to += shape_.embedding;
  }
}

// -> below_
void Lstm::take_below(const TokenBatch& batch, const float* below) {
  const long units = shape_.units, padded = LstmLayer::padded(units);
  float* to = room_in(below_, as_size(batch.rows() * padded));
  each_place(parallel(), batch, [&](long by_time, long by_row) {
    float* rest = std::copy_n(below + by_row * units, units, to + by_time * padded);
    std::fill_n(rest, padded - units, 0.0f);
  });
}

// change: [context][batch][padded units]
void Lstm::give_below(const TokenBatch& batch, const float* change, float* below_change) const {
  const long units = shape_.units, padded = LstmLayer::padded(units);
  each_place(parallel(), batch, [&](long by_time, long by_row) {
    std::copy_n(change + by_time * padded, units, below_change + by_row * units);
  });
}

// state: [batch][state_floats()], or null: zeros.
void Lstm::begin_with(std::size_t index, long batch, const float* state) {
  LstmLayer& layer = layers_[index];
  const long units = shape_.units, padded = LstmLayer::padded(units);
  const long all = static_cast<long>(state_floats()), first = 2 * static_cast<long>(index) * units;
  std::fill_n(layer.out(-1), batch * padded, 0.0f);
  std::fill_n(layer.cell(-1), batch * padded, 0.0f);
  for (long row = 0; state && row < batch; ++row) {
    std::copy_n(state + row * all + first, units, layer.out(-1) + row * padded);
    std::copy_n(state + row * all + first + units, units, layer.cell(-1) + row * padded);
  }
}

void Lstm::keep_state(long batch, float* state) {
  const long units = shape_.units, padded = LstmLayer::padded(units);
  for (long row = 0; row < batch; ++row) {
    for (LstmLayer& layer : layers_) {
      state = std::copy_n(layer.out(context_ - 1) + row * padded, units, state);
      state = std::copy_n(layer.cell(context_ - 1) + row * padded, units, state);
    }
  }
}

// -> top_
Lstm::Top Lstm::run(const float* params, const TokenBatch& batch, const float* below, const float* state) {
  if (shape_.part.is_first()) {
    take_tokens(params, batch);
  } else {
    take_below(batch, below);
  }
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    const LstmLayer::Shape shape = shape_of(i, batch.batch);
    layers_[i].make_room(shape);
    begin_with(i, batch.batch, state);
    layers_[i].forward(parallel(), shape, weights_of(i, params), input_of(i, batch.batch));
  }
  const long units = shape_.units, padded = LstmLayer::padded(units);
  const float* out = layers_.back().out(0);
  float* top = room_in(top_, as_size(batch.rows() * units));
  each_place(parallel(), batch, [&](long by_time, long by_row) {
    std::copy_n(out + by_time * padded, units, top + by_row * units);
  });
  return {top, room_in(top_change_, as_size(batch.rows() * units))};
}

// top_change_: in, d loss / d top_.
void Lstm::run_back(const float* params, const TokenBatch& batch, const float*, float* gradient,
                    float* below_change) {
  const long units = shape_.units, padded = LstmLayer::padded(units);
  const std::size_t all = as_size(batch.rows() * padded);
  float *change = room_in(change_, all), *lower = room_in(lower_change_, all);
  each_place(parallel(), batch, [&](long by_time, long by_row) {
    float* to = std::copy_n(top_change_.data() + by_row * units, units, change + by_time * padded);
    std::fill_n(to, padded - units, 0.0f);
  });
  if (shape_.part.is_first()) room_in(embedded_change_, distinct_.size() * as_size(shape_.embedding));
  for (std::size_t i = layers_.size(); i-- > 0; std::swap(change, lower)) {
    const LstmShape::Layer& at = shape_.layer[i];
    layers_[i].backward(parallel(), shape_of(i, batch.batch), weights_of(i, params), input_of(i, batch.batch),
                        change,
                        {gradient + at.ih, gradient + at.hh, gradient + at.bias_ih, gradient + at.bias_hh},
                        shape_.reads_tokens(i) ? embedded_change_.data() : lower);
  }
  if (shape_.part.is_first()) return add_embedding_gradient(gradient + shape_.table);
  give_below(batch, change, below_change);
}

void Lstm::add_embedding_gradient(float* gradient) const {
  const long width = shape_.embedding;
  std::fill_n(gradient, shape_.vocabulary * width, 0.0f);
  const float* from = embedded_change_.data();
  for (const Token token : distinct_) {
    std::copy_n(from, width, gradient + token * width);
    from += width;
  }
}

std::size_t Lstm::memory_bytes() const {
  std::size_t bytes = capacity_bytes(distinct_, row_of_, embedded_, embedded_change_, below_, top_,
                                     top_change_, change_, lower_change_) +
                      own_memory_bytes();
  for (const LstmLayer& layer : layers_) bytes += layer.memory_bytes();
  return bytes;
}

}  // namespace rumor::models
