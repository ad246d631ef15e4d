#include "models/families/mlp.h"

#include <algorithm>

#include "runtime/base/check.h"
#include "runtime/base/text.h"

namespace rumor::models {

Result<std::unique_ptr<Model>> make_mlp(const ModelConfig& config) {
  if (config.vocabulary > 0)
    return Error{Errc::usage,
                 "an mlp does not read text; use model.family = \"gpt\", or data of another kind"};
  if (config.inputs == 0) return Error{Errc::usage, "an mlp needs at least one input"};
  if (config.classes < 2 || config.classes > 256)
    return Error{Errc::usage, str("an mlp needs 2 to 256 classes, not ", config.classes)};
  std::vector<std::uint32_t> widths{config.inputs};
  for (std::size_t i = 0; i < config.hidden.size(); ++i) {
    if (config.hidden[i] == 0)
      return Error{Errc::usage, str("hidden layer ", i + 1, " of the mlp has no units; leave it out")};
    widths.push_back(config.hidden[i]);
  }
  widths.push_back(config.classes);
  Result<ParamLayout> layout = ParamLayout::create(DenseLayers::tensors(widths, 0));
  if (!layout) return layout.error();
  return std::unique_ptr<Model>(std::make_unique<Mlp>(std::move(*layout), widths));
}

Mlp::Mlp(ParamLayout layout, const std::vector<std::uint32_t>& widths)
    : layout_(std::move(layout)), layers_(layout_, widths) {}

float Mlp::loss_and_gradient(std::span<const float> params, const Batch& batch, std::span<float> gradient) {
  check(params, batch);
  RUMOR_CHECK(gradient.size() == layout_.params());
  layers_.forward(params.data(), batch.x.data(), batch.rows);
  const DenseLayers::Outcome outcome = layers_.softmax(batch.label.data(), true, batch.soft);
  layers_.backward(params.data(), batch.x.data(), gradient.data(), nullptr);
  return static_cast<float>(outcome.loss_sum / batch.rows);
}

Evaluation Mlp::evaluate(std::span<const float> params, const Batch& batch) {
  check(params, batch);
  constexpr std::uint32_t piece = 256;
  double loss = 0;
  std::uint32_t right = 0;
  for (std::uint32_t row = 0; row < batch.rows; row += piece) {
    const std::uint32_t rows = std::min(piece, batch.rows - row);
    layers_.forward(params.data(), batch.x.data() + std::size_t{row} * layers_.inputs(), rows);
    const DenseLayers::Outcome outcome = layers_.softmax(batch.label.data() + row, false);
    loss += outcome.loss_sum;
    right += outcome.right;
  }
  return {loss / batch.rows, static_cast<double>(right) / batch.rows};
}

void Mlp::predict(std::span<const float> params, const Batch& batch, std::span<float> out) {
  check(params, batch);
  RUMOR_CHECK(out.size() == predictions(batch.rows));
  layers_.forward(params.data(), batch.x.data(), batch.rows);
  layers_.predict(out.data());
}

void Mlp::check(std::span<const float> params, const Batch& batch) const {
  RUMOR_CHECK(params.size() == layout_.params());
  RUMOR_CHECK(batch.rows > 0);
  RUMOR_CHECK(batch.x.size() == std::size_t{batch.rows} * layers_.inputs());
  RUMOR_CHECK(batch.label.size() == batch.rows);
  RUMOR_CHECK(batch.soft.probability.empty() || batch.soft.probability.size() == predictions(batch.rows));
}

}  // namespace rumor::models
