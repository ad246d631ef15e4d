// A part of a model with an exit behind it (ModelConfig::exit). The part itself computes what it computes without one.
#include <algorithm>
#include <string_view>
#include <utility>

#include "models/families/cnn_plan.h"
#include "models/families/model.h"
#include "models/layers/dense.h"
#include "runtime/base/check.h"
#include "runtime/base/memory_bytes.h"
#include "runtime/base/text.h"

namespace rumor::models {
namespace {

constexpr std::string_view exit_prefix = "exit.";

bool is_of_exit(const TensorInfo& tensor) { return tensor.name.starts_with(exit_prefix); }

constexpr std::uint32_t cells_max = 4;  // a side

// The exit reads a row of the border as planes, one after another, each cut into cells whose means the head sees. Where
// the border has no pictures, a value is a plane of one pixel.
struct ExitInput {
  std::uint32_t channels = 0, height = 1, width = 1;

  std::uint32_t cell_rows() const { return std::min(height, cells_max); }
  std::uint32_t cell_columns() const { return std::min(width, cells_max); }
  std::uint32_t cells() const { return cell_rows() * cell_columns(); }
  std::size_t pixels() const { return std::size_t{height} * width; }

  // work(cell, pixel, pixels of this cell) for all pixels of a plane, cell by cell.
  template <class Work>
  void each_pixel(const Work& work) const {
    for (std::uint32_t cell = 0; cell < cells(); ++cell) {
      const std::uint32_t i = cell / cell_columns(), j = cell % cell_columns();
      const std::uint32_t top = i * height / cell_rows(), bottom = (i + 1) * height / cell_rows();
      const std::uint32_t left = j * width / cell_columns(), right = (j + 1) * width / cell_columns();
      const auto size = static_cast<float>((bottom - top) * (right - left));
      for (std::uint32_t row = top; row < bottom; ++row)
        for (std::uint32_t column = left; column < right; ++column)
          work(cell, std::size_t{row} * width + column, size);
    }
  }
};

// Thread: one caller at a time. Memory: the part's, one border of the largest batch, and the head's inputs twice.
class ExitedModel final : public Model {
 public:
  // `layout`: of the part, then of the exit.
  ExitedModel(std::unique_ptr<Model> body, ParamLayout layout, ExitInput input, std::uint32_t classes, double weight)
      : body_(std::move(body)),
        layout_(std::move(layout)),
        input_(input),
        head_(layout_, {input.channels * input.cells(), classes}),
        weight_(static_cast<float>(weight)) {}

  const ParamLayout& layout() const override { return layout_; }
  TensorStart start_of(const TensorInfo& tensor) const override {
    return is_of_exit(tensor) ? TensorStart::by_inputs(tensor) : body_->start_of(tensor);
  }
  ModelPart part() const override { return body_->part(); }
  BorderFloats border_floats() const override { return body_->border_floats(); }
  // An exit is a head, as the last tensor of the whole model.
  std::uint32_t hidden_matrices(const TensorInfo& tensor) const override {
    return is_of_exit(tensor) ? 0 : body_->hidden_matrices(tensor);
  }

  void forward(std::span<const float> params, const Batch& batch, std::span<const float> below,
               std::span<float> above) override {
    RUMOR_CHECK(params.size() == layout_.params());
    body_->forward(params.first(body_->layout().params()), batch, below, above);
    take_means(above);
    head_.forward(params.data(), seen_.data(), batch.rows);
  }

  float backward(std::span<const float> params, const Batch& batch, std::span<const float> below,
                 std::span<const float> above_change, std::span<float> gradient,
                 std::span<float> below_change) override {
    check_backward(batch.rows, above_change, gradient, below_change);
    RUMOR_CHECK(batch.label.size() == batch.rows);
    const std::uint32_t body_params = body_->layout().params();
    head_.softmax(batch.label.data(), true);
    change_.resize(seen_.size());
    head_.backward(params.data(), seen_.data(), gradient.data(), change_.data());
    for (float& one : gradient.subspan(body_params)) one *= weight_;
    sum_.assign(above_change.begin(), above_change.end());
    for (std::size_t plane = 0; plane < sum_.size() / input_.pixels(); ++plane) {
      const float* const change = change_.data() + plane * input_.cells();
      float* const to = sum_.data() + plane * input_.pixels();
      input_.each_pixel([&](std::uint32_t cell, std::size_t pixel, float size) {
        to[pixel] += change[cell] * weight_ / size;
      });
    }
    return body_->backward(params.first(body_params), batch, below, sum_, gradient.first(body_params), below_change);
  }

  // The whole model has no exit.
  Evaluation evaluate(std::span<const float>, const Batch&) override {
    RUMOR_CHECK(part().is_whole());
    return {};
  }
  void predict(std::span<const float>, const Batch&, std::span<float>) override { RUMOR_CHECK(part().is_whole()); }
  std::size_t predictions(std::uint32_t rows) const override { return body_->predictions(rows); }
  std::uint32_t exit_classes() const override { return head_.classes(); }
  void predict_exit(std::span<float> out) override {
    RUMOR_CHECK(out.size() == std::size_t{head_.rows()} * head_.classes());
    head_.predict(out.data());
  }
  std::uint64_t multiply_adds(std::uint32_t rows) const override {
    return body_->multiply_adds(rows) + std::uint64_t{rows} * head_.inputs() * head_.classes();
  }
  std::size_t memory_bytes() const override {
    return body_->memory_bytes() + head_.memory_bytes() + capacity_bytes(seen_, change_, sum_);
  }
  void set_parallel(Parallel* parallel) override {
    body_->set_parallel(parallel);
    head_.set_parallel(parallel);
  }

 private:
  // border [rows, channels, pixels] -> seen_ [rows, channels, cells]
  void take_means(std::span<const float> border) {
    const std::size_t planes = border.size() / input_.pixels();
    seen_.assign(planes * input_.cells(), 0);
    for (std::size_t plane = 0; plane < planes; ++plane) {
      const float* const from = border.data() + plane * input_.pixels();
      float* const seen = seen_.data() + plane * input_.cells();
      input_.each_pixel(
          [&](std::uint32_t cell, std::size_t pixel, float size) { seen[cell] += from[pixel] / size; });
    }
  }

  std::unique_ptr<Model> body_;
  ParamLayout layout_;
  ExitInput input_;
  DenseLayers head_;
  float weight_;
  LargeVector<float> seen_, change_;  // the input of head_, d exit's loss / d it
  LargeVector<float> sum_;            // d all losses / d border
};

Result<ExitInput> exit_input(const ModelConfig& config, const Model& body) {
  const auto floats = static_cast<std::uint32_t>(body.border_floats().above);
  if (config.family != "cnn") return ExitInput{floats};
  const auto plan = plan_cnn(config);
  if (!plan) return plan.error();
  const PictureShape shape = plan->maps.back().shape;
  return ExitInput{shape.channels, shape.height, shape.width};
}

}  // namespace

std::uint32_t params_without_exit(const ParamLayout& layout) {
  const auto& tensors = layout.tensors();
  const auto exit = std::find_if(tensors.begin(), tensors.end(), is_of_exit);
  return exit == tensors.end() ? layout.params() : exit->offset;
}

Result<std::unique_ptr<Model>> make_exited_model(const ModelConfig& config) {
  RUMOR_CHECK(config.exit.is_on());
  if (config.family != "mlp" && config.family != "cnn")
    return Error{Errc::usage, str("pipeline.exits are for models that classify, of family \"mlp\" or \"cnn\", and ",
                                  "this one is \"", config.family, "\"; leave the key out")};
  ModelConfig without = config;
  without.exit = {};
  auto body = make_model(without);
  if (!body) return body.error();
  if ((*body)->part().is_last())
    return Error{Errc::usage, "the last stage ends in the head of the model and has no exit; leave its number in "
                              "pipeline.exits out"};
  const auto input = exit_input(without, **body);
  if (!input) return input.error();
  std::vector<TensorInfo> tensors = (*body)->layout().tensors();
  const std::string name = str(exit_prefix, config.exit.stage);
  tensors.push_back({name + ".weight", {config.classes, input->channels * input->cells()}});
  tensors.push_back({name + ".bias", {config.classes}});
  auto layout = ParamLayout::create(std::move(tensors));
  if (!layout) return layout.error();
  return std::unique_ptr<Model>(std::make_unique<ExitedModel>(std::move(*body), std::move(*layout), *input,
                                                              config.classes, config.exit.weight));
}

}  // namespace rumor::models
