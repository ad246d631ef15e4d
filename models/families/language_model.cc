#include "models/families/language_model.h"

#include <algorithm>

#include "runtime/base/check.h"

namespace rumor::models {
namespace {

// The states of rows from `row` on; null: none.
const float* state_at(const Batch& batch, std::size_t row, std::size_t floats) {
  return batch.state.empty() ? nullptr : batch.state.data() + row * floats;
}

}  // namespace

TokenBatch LanguageModel::tokens_of(std::span<const float> params, const Batch& batch) const {
  RUMOR_CHECK(params.size() == layout_.params());
  RUMOR_CHECK(batch.rows > 0);
  RUMOR_CHECK(batch.state.empty() || batch.state.size() == batch.rows * state_floats());
  if (!part().is_first() && !part().is_last()) return {nullptr, batch.rows, sizes_.context};
  RUMOR_CHECK(batch.tokens.size() == batch.rows * static_cast<std::size_t>(sizes_.context + 1));
  RUMOR_CHECK(batch.soft.probability.empty() || batch.soft.probability.size() == predictions(batch.rows));
  RUMOR_CHECK(*std::max_element(batch.tokens.begin(), batch.tokens.end()) < sizes_.vocabulary);
  return {batch.tokens.data(), batch.rows, sizes_.context};
}

TokenHead::Weights LanguageModel::head_of(std::span<const float> params) const {
  return {params.data() + sizes_.table, sizes_.bias ? params.data() + *sizes_.bias : nullptr};
}

BorderFloats LanguageModel::border_floats() const {
  const auto floats = static_cast<std::size_t>(sizes_.context * sizes_.width);
  return {part().is_first() ? 0 : floats, part().is_last() ? 0 : floats};
}

void LanguageModel::forward(std::span<const float> params, const Batch& batch, std::span<const float> below,
                            std::span<float> above) {
  const TokenBatch tokens = tokens_of(params, batch);
  RUMOR_CHECK(below.size() == batch.rows * border_floats().below);
  RUMOR_CHECK(above.size() == batch.rows * border_floats().above);
  top_ = run(params.data(), tokens, below.data(), state_at(batch, 0, state_floats()));
  std::copy_n(top_.x, above.size(), above.data());
}

float LanguageModel::backward(std::span<const float> params, const Batch& batch, std::span<const float> below,
                              std::span<const float> above_change, std::span<float> gradient,
                              std::span<float> below_change) {
  const TokenBatch tokens = tokens_of(params, batch);
  if (adapters_ == nullptr) check_backward(batch.rows, above_change, gradient, below_change);
  RUMOR_CHECK(adapters_ == nullptr || gradient.empty());
  if (!batch.state.empty()) keep_state(tokens.batch, batch.state.data());
  double loss = 0;
  if (part().is_last()) {
    const TokenHead::Gradients gradients{top_.change, place(gradient.data(), sizes_.table),
                                         sizes_.bias ? place(gradient.data(), *sizes_.bias) : nullptr};
    loss = head_.loss(parallel_, tokens, sizes_.width, sizes_.vocabulary, top_.x, head_of(params), &gradients,
                      batch.soft);
  } else {
    std::copy(above_change.begin(), above_change.end(), top_.change);
  }
  run_back(params.data(), tokens, below.data(), gradient.data(), below_change.data());
  return static_cast<float>(loss / static_cast<double>(tokens.rows()));
}

void LanguageModel::predict(std::span<const float> params, const Batch& batch, std::span<float> out) {
  RUMOR_CHECK(part().is_whole());
  const TokenBatch tokens = tokens_of(params, batch);
  RUMOR_CHECK(out.size() == predictions(batch.rows));
  const Top top = run(params.data(), tokens, nullptr, state_at(batch, 0, state_floats()));
  after_.resize(batch.rows * state_floats());
  keep_state(tokens.batch, after_.data());
  head_.predict(parallel_, tokens, sizes_.width, sizes_.vocabulary, top.x, head_of(params), out.data());
}

void LanguageModel::state_after(std::span<float> state) const {
  RUMOR_CHECK(state_floats() > 0 && state.size() == after_.size());
  std::copy(after_.begin(), after_.end(), state.begin());
}

Evaluation LanguageModel::evaluate(std::span<const float> params, const Batch& batch) {
  RUMOR_CHECK(part().is_whole());
  const TokenBatch all = tokens_of(params, batch);
  constexpr long piece_rows = 8;
  after_.resize(batch.rows * state_floats());
  double loss = 0;
  for (long row = 0; row < all.batch; row += piece_rows) {
    const TokenBatch piece{all.tokens + row * (all.context + 1), std::min(piece_rows, all.batch - row),
                           all.context};
    const Top top =
        run(params.data(), piece, nullptr, state_at(batch, static_cast<std::size_t>(row), state_floats()));
    loss += head_.loss(parallel_, piece, sizes_.width, sizes_.vocabulary, top.x, head_of(params), nullptr);
    keep_state(piece.batch, after_.data() + static_cast<std::size_t>(row) * state_floats());
  }
  return {loss / static_cast<double>(all.rows()), std::nullopt};
}

}  // namespace rumor::models
