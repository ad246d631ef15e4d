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
  RUMOR_CHECK(batch.tokens.size() == batch.rows * static_cast<std::size_t>(sizes_.context + 1));
  RUMOR_CHECK(batch.soft.probability.empty() || batch.soft.probability.size() == predictions(batch.rows));
  RUMOR_CHECK(batch.state.empty() || batch.state.size() == batch.rows * state_floats());
  RUMOR_CHECK(*std::max_element(batch.tokens.begin(), batch.tokens.end()) < sizes_.vocabulary);
  return {batch.tokens.data(), batch.rows, sizes_.context};
}

TokenHead::Weights LanguageModel::head_of(std::span<const float> params) const {
  return {params.data() + sizes_.table, sizes_.bias ? params.data() + *sizes_.bias : nullptr};
}

float LanguageModel::loss_and_gradient(std::span<const float> params, const Batch& batch, std::span<float> gradient) {
  const TokenBatch tokens = tokens_of(params, batch);
  RUMOR_CHECK(gradient.size() == params.size());
  const Top top = forward(params.data(), tokens, state_at(batch, 0, state_floats()));
  if (!batch.state.empty()) keep_state(tokens.batch, batch.state.data());
  const TokenHead::Gradients gradients{top.change, gradient.data() + sizes_.table,
                                       sizes_.bias ? gradient.data() + *sizes_.bias : nullptr};
  const double loss = head_.loss(parallel_, tokens, sizes_.width, sizes_.vocabulary, top.x, head_of(params), &gradients,
                                 batch.soft);
  backward(params.data(), tokens, gradient.data());
  return static_cast<float>(loss / static_cast<double>(tokens.rows()));
}

void LanguageModel::predict(std::span<const float> params, const Batch& batch, std::span<float> out) {
  const TokenBatch tokens = tokens_of(params, batch);
  RUMOR_CHECK(out.size() == predictions(batch.rows));
  const Top top = forward(params.data(), tokens, state_at(batch, 0, state_floats()));
  head_.predict(parallel_, tokens, sizes_.width, sizes_.vocabulary, top.x, head_of(params), out.data());
}

Evaluation LanguageModel::evaluate(std::span<const float> params, const Batch& batch) {
  const TokenBatch all = tokens_of(params, batch);
  constexpr long piece_rows = 8;
  double loss = 0;
  for (long row = 0; row < all.batch; row += piece_rows) {
    const TokenBatch part{all.tokens + row * (all.context + 1), std::min(piece_rows, all.batch - row), all.context};
    const Top top = forward(params.data(), part, state_at(batch, static_cast<std::size_t>(row), state_floats()));
    loss += head_.loss(parallel_, part, sizes_.width, sizes_.vocabulary, top.x, head_of(params), nullptr);
  }
  return {loss / static_cast<double>(all.rows()), std::nullopt};
}

}  // namespace rumor::models
