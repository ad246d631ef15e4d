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
  const auto part = ModelPart::create(config.units, static_cast<std::uint32_t>(widths.size() - 1));
  if (!part) return part.error();
  const std::vector<std::uint32_t> own(widths.begin() + part->begin, widths.begin() + part->end + 1);
  Result<ParamLayout> layout = ParamLayout::create(DenseLayers::tensors(own, 2 * part->begin));
  if (!layout) return layout.error();
  return std::unique_ptr<Model>(std::make_unique<Mlp>(std::move(*layout), own, *part));
}

Mlp::Mlp(ParamLayout layout, const std::vector<std::uint32_t>& widths, ModelPart part)
    : layout_(std::move(layout)),
      part_(part),
      layers_(layout_, widths, part.is_last() ? DenseLayers::End::softmax : DenseLayers::End::relu) {}

BorderFloats Mlp::border_floats() const {
  return {part_.is_first() ? 0 : layers_.inputs(), part_.is_last() ? 0 : layers_.classes()};
}

void Mlp::forward(std::span<const float> params, const Batch& batch, std::span<const float> below,
                  std::span<float> above) {
  check(params, batch, input(batch, below));
  RUMOR_CHECK(above.size() == batch.rows * border_floats().above);
  layers_.forward(params.data(), input(batch, below).data(), batch.rows);
  if (!part_.is_last()) layers_.give_outputs(above.data());
}

float Mlp::backward(std::span<const float> params, const Batch& batch, std::span<const float> below,
                    std::span<const float> above_change, std::span<float> gradient,
                    std::span<float> below_change) {
  check_backward(batch.rows, above_change, gradient, below_change);
  double loss = 0;
  if (part_.is_last()) {
    loss = layers_.softmax(batch.label.data(), true, batch.soft).loss_sum;
  } else {
    layers_.take_output_change(above_change.data());
  }
  layers_.backward(params.data(), input(batch, below).data(), gradient.data(),
                   part_.is_first() ? nullptr : below_change.data());
  return static_cast<float>(loss / batch.rows);
}

Evaluation Mlp::evaluate(std::span<const float> params, const Batch& batch) {
  RUMOR_CHECK(part_.is_whole());
  check(params, batch, batch.x);
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
  RUMOR_CHECK(part_.is_whole());
  check(params, batch, batch.x);
  RUMOR_CHECK(out.size() == predictions(batch.rows));
  layers_.forward(params.data(), batch.x.data(), batch.rows);
  layers_.predict(out.data());
}

void Mlp::predict_exit(std::span<float> out) {
  RUMOR_CHECK(part_.is_last() && out.size() == predictions(layers_.rows()));
  layers_.predict(out.data());
}

void Mlp::check(std::span<const float> params, const Batch& batch, std::span<const float> input) const {
  RUMOR_CHECK(params.size() == layout_.params());
  RUMOR_CHECK(batch.rows > 0);
  RUMOR_CHECK(input.size() == std::size_t{batch.rows} * layers_.inputs());
  if (!part_.is_last()) return;
  RUMOR_CHECK(batch.label.size() == batch.rows);
  RUMOR_CHECK(batch.soft.probability.empty() || batch.soft.probability.size() == predictions(batch.rows));
}

}  // namespace rumor::models
